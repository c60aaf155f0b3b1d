//! The results as tables of comma-separated values.

use crate::algorithm::Algorithm;
use crate::endurance::Endurance;
use crate::{contention, outage};
use resubmit::engine::Millis;
use std::fmt::Write;

/// The contention model at one number of clients: means of many runs.
#[derive(Debug, Clone, Copy)]
pub struct Contention {
    pub algorithm: Algorithm,
    pub clients: usize,
    pub runs: usize,
    pub calls: f64,
    pub time_ms: f64,
    pub delivered: f64,
}

impl Contention {
    pub fn of(algorithm: Algorithm, clients: usize, runs: &[contention::Outcome]) -> Self {
        let mean = |of: fn(&contention::Outcome) -> u64| {
            runs.iter().map(of).sum::<u64>() as f64 / runs.len() as f64
        };
        Contention {
            algorithm,
            clients,
            runs: runs.len(),
            calls: mean(|run| run.calls),
            time_ms: mean(|run| run.time) / 1_000.0,
            delivered: mean(|run| run.delivered),
        }
    }
}

/// One run of the outage model.
#[derive(Debug)]
pub struct Outage {
    pub setting: outage::Setting,
    pub outcome: outage::Outcome,
}

impl Outage {
    /// Its algorithm, and its spread where that is not the policy's.
    pub fn name(&self) -> String {
        let algorithm = self.setting.algorithm.name();
        match self.setting.spread {
            None => algorithm.to_owned(),
            Some(ms) => format!("{algorithm}+spread{ms}"),
        }
    }

    /// From when the server and the network were back until that share of the deliveries was known.
    pub fn drained_ms(&self, share: f64) -> Millis {
        let at = self.outcome.quantile(share);
        at.saturating_sub(self.setting.down_for)
    }

    /// How many deliveries were known later than `ms` after that.
    pub fn late(&self, ms: Millis) -> u64 {
        let limit = self.setting.down_for + ms;
        let times = self.outcome.delivered_at.iter();
        times.filter(|at| **at > limit).count() as u64
    }

    /// The most requests in `width`, since the server was back.
    pub fn peak(&self, width: Millis) -> u64 {
        self.outcome.peak(width, self.setting.down_for..Millis::MAX)
    }

    /// Requests that arrived, for one that was delivered.
    pub fn calls_per_delivered(&self) -> f64 {
        self.outcome.calls() as f64 / self.outcome.delivered_at.len() as f64
    }
}

/// `herd.csv`. A column that a model does not have is empty.
pub fn herd(contention: &[Contention], outage: &[Outage]) -> String {
    let mut csv = String::from(
        "model,algorithm,clients,calls,time_ms,runs,delivered,calls_per_delivered,reconnect_spread_ms,\
         peak_down_per_second,peak_per_second,peak_per_100_ms,drained_half_ms,drained_99_percent_ms,drained_ms,\
         late_2_minutes,late_7_minutes\n",
    );
    for row in contention {
        let Contention {
            clients,
            calls,
            time_ms,
            runs,
            delivered,
            ..
        } = row;
        let name = row.algorithm.name();
        let each = calls / delivered;
        line(
            &mut csv,
            format_args!(
                "contention,{name},{clients},{calls:.2},{time_ms:.2},{runs},{delivered},{each:.2},,,,,,,,,"
            ),
        );
    }
    for row in outage {
        let name = row.name();
        let (setting, outcome) = (&row.setting, &row.outcome);
        let model = [
            setting.browsers as u64,
            outcome.calls(),
            outcome.quantile(1.0),
            1,
            outcome.delivered_at.len() as u64,
        ];
        let load = [
            setting.policy().reconnect_spread_ms,
            outcome.peak(1_000, 0..setting.down_for - 1_000),
            row.peak(1_000),
            row.peak(100),
            row.drained_ms(0.5),
            row.drained_ms(0.99),
            row.drained_ms(1.0),
            row.late(120_000),
            row.late(420_000),
        ];
        let each = row.calls_per_delivered();
        line(
            &mut csv,
            format_args!(
                "outage,{name},{},{each:.2},{}",
                joined(&model),
                joined(&load)
            ),
        );
    }
    csv
}

/// `herd-presets.csv`: how long each bears a server that answers 503 at once, and one that never answers.
pub fn presets(rows: &[(&str, Endurance, Endurance)]) -> String {
    let mut csv =
        String::from("preset,busy_mean_ms,busy_5_percent_ms,silent_mean_ms,silent_5_percent_ms\n");
    for (name, busy, silent) in rows {
        line(
            &mut csv,
            format_args!(
                "{name},{:.0},{},{:.0},{}",
                busy.mean_ms, busy.percentile_5_ms, silent.mean_ms, silent.percentile_5_ms
            ),
        );
    }
    csv
}

fn joined(numbers: &[u64]) -> String {
    let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
    numbers.join(",")
}

fn line(csv: &mut String, line: std::fmt::Arguments<'_>) {
    // (A string takes everything.)
    let _ = writeln!(csv, "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet;
    use crate::outage::Setting;

    #[test]
    fn every_line_has_a_value_or_nothing_for_every_column() {
        let algorithm = Algorithm::Full;
        let runs = [contention::run(algorithm, 10, 1)];
        let setting = Setting {
            browsers: 20,
            down_for: 2_000,
            ..Setting::of(algorithm, 1)
        };
        let outage = Outage {
            setting,
            outcome: fleet::run(setting),
        };
        let csv = herd(&[Contention::of(algorithm, 10, &runs)], &[outage]);
        let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
        let starts = [
            "model,algorithm,clients",
            "contention,full,10",
            "outage,full,20",
        ];
        assert_eq!(lines.len(), starts.len());
        for (line, start) in lines.iter().zip(starts) {
            assert_eq!(line.len(), lines[0].len());
            assert_eq!(line[..3].join(","), start);
        }
    }
}
