//! The herd, measured: what a way of waiting does to a server that many clients want at once.
//!
//! `cargo run --release --example herd -- FOLDER` writes `herd.csv`, `herd-presets.csv`, `herd.svg` and `herd-outage.svg`
//! there. The same program gives the same files; docs/herd.md shows and discusses them.

mod algorithm;
#[cfg(not(target_arch = "wasm32"))]
mod chart;
mod contention;
mod endurance;
mod fleet;
mod outage;
mod table;

use algorithm::Algorithm;
use endurance::{endurance, Fails, PRESETS};
use outage::Setting;
use resubmit::engine::{Millis, Policy};
use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::thread;
use table::{Contention, Outage};

/// Where all the randomness begins.
pub const SEED: u64 = 2015;

/// Runs of which the contention model gives the mean.
const RUNS: u64 = 100;

/// Intents of which the presets' endurance is taken.
const INTENTS: u32 = 20_000;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1).map(PathBuf::from);
    let folder = folder.ok_or("usage: cargo run --release --example herd -- FOLDER")?;
    fs::create_dir_all(&folder)?;
    println!("seed {SEED}");

    let contention = contention();
    let outage = outage();
    let herd = table::herd(&contention, &outage);
    let presets = presets()?;
    print!("\n{herd}\n{presets}");

    fs::write(folder.join("herd.csv"), herd)?;
    fs::write(folder.join("herd-presets.csv"), presets)?;
    // (The crate that draws is not there for wasm32, where this only has to compile.)
    #[cfg(not(target_arch = "wasm32"))]
    {
        chart::contention(&folder.join("herd.svg"), &contention)?;
        chart::outage(&folder.join("herd-outage.svg"), &outage)?;
    }
    println!("\nwritten to {}", folder.display());
    Ok(())
}

/// Every algorithm over the study's numbers of clients. The runs have the same seeds for each.
fn contention() -> Vec<Contention> {
    each(Algorithm::ALL.to_vec(), |algorithm| {
        let mut rows = Vec::new();
        for clients in (10..=190).step_by(10) {
            let seeds = (0..RUNS).map(|run| SEED + 1_000 * run + clients as u64);
            let runs: Vec<_> = seeds
                .map(|seed| contention::run(algorithm, clients, seed))
                .collect();
            rows.push(Contention::of(algorithm, clients, &runs));
        }
        rows
    })
    .concat()
}

/// Every algorithm through the outage with the engine's spread, then full jitter with other spreads.
fn outage() -> Vec<Outage> {
    let named = Algorithm::ALL.map(|algorithm| (algorithm, None));
    let spreads = [0, 5_000, 20_000].map(|spread: Millis| (Algorithm::Full, Some(spread)));
    let settings = named.into_iter().chain(spreads);
    let settings = settings.map(|(algorithm, spread)| Setting {
        spread,
        ..Setting::of(algorithm, SEED)
    });
    each(settings.collect(), |setting| Outage {
        setting,
        outcome: fleet::run(setting),
    })
}

/// How long each preset bears a server that fails.
fn presets() -> Result<String, Box<dyn Error>> {
    let mut rows = Vec::new();
    for name in PRESETS {
        let policy = Policy::preset(name).ok_or("no such preset")?;
        let of = |fails| endurance(&policy, fails, INTENTS);
        rows.push((name, of(Fails::AtOnce), of(Fails::Never)));
    }
    Ok(table::presets(&rows))
}

/// Does `work` for each, all at once, and keeps the order.
fn each<T: Send, R: Send>(items: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let work = &work;
    thread::scope(|scope| {
        let running: Vec<_> = items
            .into_iter()
            .map(|item| scope.spawn(move || work(item)))
            .collect();
        running
            .into_iter()
            .map(|thread| match thread.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            })
            .collect()
    })
}
