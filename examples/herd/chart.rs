//! The results as charts.

use crate::algorithm::Algorithm;
use crate::outage::BIN;
use crate::table::{Contention, Outage};
use plotters::coord::Shift;
use plotters::prelude::*;
use std::error::Error;
use std::ops::Range;
use std::path::Path;

type Result = std::result::Result<(), Box<dyn Error>>;
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

const WIDTH: u32 = 960;
const HEIGHT: u32 = 380;
const FONT: &str = "sans-serif";

/// Colours that stay apart for the colour-blind (Okabe and Ito, 2008).
fn colour(algorithm: Algorithm) -> RGBColor {
    match algorithm {
        Algorithm::None => RGBColor(0x80, 0x80, 0x80),
        Algorithm::Exponential => RGBColor(0xe6, 0x9f, 0x00),
        Algorithm::Equal => RGBColor(0x56, 0xb4, 0xe9),
        Algorithm::Decorrelated => RGBColor(0x00, 0x9e, 0x73),
        Algorithm::Full => RGBColor(0xd5, 0x5e, 0x00),
    }
}

fn label(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::None => "no backoff",
        Algorithm::Exponential => "exponential",
        Algorithm::Equal => "equal jitter",
        Algorithm::Decorrelated => "decorrelated jitter",
        Algorithm::Full => "full jitter (ours)",
    }
}

/// Ours below the others, which are thinner.
fn ours_first(mut lines: Vec<Line>) -> Vec<Line> {
    lines.rotate_right(1);
    lines
}

struct Axis {
    name: &'static str,
    range: Range<f64>,
    logarithmic: bool,
}

impl Axis {
    fn linear(name: &'static str, range: Range<f64>) -> Self {
        Axis {
            name,
            range,
            logarithmic: false,
        }
    }

    fn logarithmic(name: &'static str, range: Range<f64>) -> Self {
        Axis {
            name,
            range: range.start.log10()..range.end.log10(),
            logarithmic: true,
        }
    }

    fn place(&self, value: f64) -> f64 {
        let placed = if self.logarithmic {
            value.log10()
        } else {
            value
        };
        placed.clamp(self.range.start, self.range.end)
    }

    /// One label for every power of ten, or so many that none needs a fraction.
    fn labels(&self) -> usize {
        if self.logarithmic {
            (self.range.end - self.range.start) as usize + 1
        } else {
            8.min(self.range.end as usize + 1)
        }
    }

    fn text(&self, placed: f64) -> String {
        let value = if self.logarithmic {
            10f64.powf(placed)
        } else {
            placed
        };
        grouped(value.round() as u64)
    }
}

/// With a comma before every three digits.
fn grouped(number: u64) -> String {
    if number < 1_000 {
        number.to_string()
    } else {
        format!("{},{:03}", grouped(number / 1_000), number % 1_000)
    }
}

struct Line {
    name: String,
    colour: RGBColor,
    width: u32,
    points: Vec<(f64, f64)>,
}

impl Line {
    /// Ours is the thicker one, so that what lies on it is seen.
    fn of(algorithm: Algorithm, points: Vec<(f64, f64)>) -> Self {
        Line {
            name: label(algorithm).to_owned(),
            colour: colour(algorithm),
            width: if algorithm == Algorithm::Full { 4 } else { 2 },
            points,
        }
    }
}

/// Where the lines' names stand.
enum Legend {
    Left,
    Right,
    /// In another panel.
    Elsewhere,
}

fn panel(
    area: &Area<'_>,
    caption: &str,
    (x, y): (Axis, Axis),
    lines: Vec<Line>,
    legend: Legend,
) -> Result {
    let mut chart = ChartBuilder::on(area)
        .caption(caption, (FONT, 17))
        .margin(12)
        .x_label_area_size(42)
        .y_label_area_size(64)
        .build_cartesian_2d(x.range.clone(), y.range.clone())?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(BLACK.mix(0.12))
        .x_desc(x.name)
        .y_desc(y.name)
        .x_labels(x.labels())
        .y_labels(y.labels())
        .x_label_formatter(&|at| x.text(*at))
        .y_label_formatter(&|at| y.text(*at))
        .label_style((FONT, 13))
        .draw()?;
    for line in lines {
        let style = line.colour.stroke_width(line.width);
        let points = line.points.iter();
        let points = points.map(|(at, value)| (x.place(*at), y.place(*value)));
        chart
            .draw_series(LineSeries::new(points, style))?
            .label(line.name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
    }
    let position = match legend {
        Legend::Left => SeriesLabelPosition::UpperLeft,
        Legend::Right => SeriesLabelPosition::UpperRight,
        Legend::Elsewhere => return Ok(()),
    };
    chart
        .configure_series_labels()
        .position(position)
        .background_style(WHITE.mix(0.85))
        .label_font((FONT, 13))
        .draw()?;
    Ok(())
}

/// Calls and time over the number of clients.
pub fn contention(path: &Path, rows: &[Contention]) -> Result {
    let root = SVGBackend::new(path, (WIDTH, HEIGHT)).into_drawing_area();
    root.fill(&WHITE)?;
    let (left, right) = root.split_horizontally(WIDTH / 2);
    let lines = |value: fn(&Contention) -> f64| {
        let line = |algorithm| {
            let rows = rows.iter().filter(|row| row.algorithm == algorithm);
            let points = rows.map(|row| (row.clients as f64, value(row))).collect();
            Line::of(algorithm, points)
        };
        ours_first(Algorithm::ALL.map(line).into())
    };
    let clients = || Axis::linear("clients", 0.0..200.0);
    panel(
        &left,
        "Contention for one row: writes tried",
        (clients(), Axis::linear("calls", 0.0..9_000.0)),
        lines(|row| row.calls),
        Legend::Left,
    )?;
    panel(
        &right,
        "Contention for one row: time until all are done",
        (
            clients(),
            Axis::logarithmic("milliseconds", 100.0..1_000_000.0),
        ),
        lines(|row| row.time_ms),
        Legend::Elsewhere,
    )?;
    Ok(root.present()?)
}

/// The load on the server, what is still to be delivered, and the first seconds after reconnecting.
pub fn outage(path: &Path, rows: &[Outage]) -> Result {
    let root = SVGBackend::new(path, (WIDTH, 2 * HEIGHT)).into_drawing_area();
    root.fill(&WHITE)?;
    let (top, bottom) = root.split_vertically(HEIGHT);
    let (left, right) = bottom.split_horizontally(WIDTH / 2);
    let named = |points: fn(&Outage) -> Vec<(f64, f64)>| {
        let rows = rows.iter().filter(|row| row.setting.spread.is_none());
        let lines = rows.map(|row| Line::of(row.setting.algorithm, points(row)));
        ours_first(lines.collect())
    };
    panel(
        &top,
        "10,000 browsers, a server of 500 requests a second, down for a minute: its load",
        (
            Axis::linear("seconds since the sale opened", 0.0..180.0),
            Axis::logarithmic("requests in a second", 1.0..100_000.0),
        ),
        named(|row| load(row, 1_000, 0..180_000)),
        Legend::Right,
    )?;
    panel(
        &left,
        "Browsers that still wait",
        (
            Axis::logarithmic("seconds since the server is back", 1.0..10_000.0),
            Axis::logarithmic("browsers", 1.0..10_000.0),
        ),
        named(waiting),
        Legend::Elsewhere,
    )?;
    let spreads = rows
        .iter()
        .filter(|row| row.setting.algorithm == Algorithm::Full);
    let shades = [0xd55e00, 0x0072b2, 0x009e73, 0xcc79a7];
    let lines = spreads.zip(shades).map(|(row, shade)| Line {
        name: match row.setting.policy().reconnect_spread_ms {
            0 => "at once".to_owned(),
            ms if row.setting.spread.is_none() => format!("within {ms} ms (ours)"),
            ms => format!("within {} s", ms / 1_000),
        },
        colour: RGBColor((shade >> 16) as u8, (shade >> 8) as u8, shade as u8),
        width: 2,
        points: {
            let from = row.setting.down_for;
            let load = load(row, 100, from..from + 3_000).into_iter();
            load.map(|(at, n)| (at - from as f64 / 1_000.0, n))
                .collect()
        },
    });
    panel(
        &right,
        "Full jitter: the load after one `online`",
        (
            Axis::linear("seconds since the network is back", 0.0..3.0),
            Axis::logarithmic("requests in 100 ms", 1.0..10_000.0),
        ),
        lines.collect(),
        Legend::Right,
    )?;
    Ok(root.present()?)
}

/// The requests that arrived in each span of that width: a step from its beginning to its end, in seconds.
fn load(row: &Outage, width: u64, during: Range<u64>) -> Vec<(f64, f64)> {
    let arrivals = &row.outcome.arrivals;
    let seconds = |ms: u64| ms as f64 / 1_000.0;
    during
        .step_by(width as usize)
        .flat_map(|from| {
            let bins = arrivals.iter().skip((from / BIN) as usize);
            let arrived: u32 = bins.take((width / BIN) as usize).sum();
            // (What is none has no logarithm, and is drawn on the axis.)
            let arrived = f64::from(arrived).max(0.1);
            [(seconds(from), arrived), (seconds(from + width), arrived)]
        })
        .collect()
}

/// How many still wait, over time.
fn waiting(row: &Outage) -> Vec<(f64, f64)> {
    let browsers = row.outcome.delivered_at.len() as f64;
    let fewer = |left: &f64| Some(0.97 * left).filter(|left| *left >= 1.0);
    std::iter::successors(Some(browsers), fewer)
        .chain([1.0])
        .map(|left| (row.drained_ms(1.0 - left / browsers), left))
        .map(|(ms, left)| ((ms as f64 / 1_000.0).max(1.0), left))
        .collect()
}
