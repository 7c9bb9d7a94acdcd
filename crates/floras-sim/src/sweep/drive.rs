//! The driver of a sweep: one run per distinct experiment, each in its own directory, and the table of all points.
//!
//! Runs may also be done elsewhere: [`PreparedSweep::to_do`] lists the remaining points, and [`PreparedSweep::put`] imports the
//! files of a run.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use super::grid::{Point, Sweep};
use super::table::SweepTable;
use crate::error::SimError;
use crate::federation::Federation;
use crate::record::{self, Entry, RunDirectory};
use crate::run::{Event, PreparedRun};
use crate::summary::Summary;

/// A step of a sweep, for progress displays.
#[derive(Debug)]
pub enum SweepEvent<'a> {
    /// The run of a point begins or is resumed.
    PointBegins {
        /// The point, counted from 0.
        number: usize,
        /// Its values and its experiment.
        point: &'a Point,
        /// The federation of the point.
        federation: &'a Federation,
    },
    /// A step of its run.
    Run(Event),
    /// The run is complete and its row is in the table.
    PointEnds {
        /// The point, counted from 0.
        number: usize,
    },
}

/// A sweep whose points are all validated and whose directory is locked: ready to run.
#[derive(Debug)]
pub struct PreparedSweep {
    sweep: Sweep,
    directory: PathBuf,
    threads: usize,
    /// One summary per point; `None` until its run is complete.
    done: Vec<Option<Summary>>,
    /// Rounds of the runs that were complete at the beginning, and of all runs, over all trials.
    rounds: (u64, u64),
    _lock: File,
}

impl PreparedSweep {
    /// Validates every point before the first one runs, then locks the directory. An error names its point. A directory that
    /// holds the run of another experiment, or another sweep, is rejected.
    pub fn new(sweep: Sweep, directory: &Path, threads: usize) -> Result<Self, SimError> {
        Self::watched(sweep, directory, threads, &|_| {})
    }

    /// [`new`](Self::new), which calls `watch` with the number of each point, from 0, before it loads and validates the point.
    /// Points whose runs are complete are not loaded.
    pub fn watched(
        sweep: Sweep,
        directory: &Path,
        threads: usize,
        watch: &dyn Fn(usize),
    ) -> Result<Self, SimError> {
        sweep.check_grid(directory)?;
        let (mut complete, mut all) = (0, 0);
        for number in sweep.runs() {
            let experiment = &sweep.points()[number].experiment;
            let place = directory.join(Sweep::directory_name(number));
            let prepare = || {
                RunDirectory::check_experiment(&place, experiment)?;
                if let Some(summary) = RunDirectory::read_summary(&place)? {
                    let rounds = summary.rounds_done();
                    return Ok((rounds, rounds));
                }
                watch(number);
                let federation = Federation::new(experiment)?;
                federation.check_memory(threads)?;
                Ok((0, u64::from(federation.rounds()) * u64::from(experiment.settings().trials)))
            };
            let (done, rounds) = prepare().map_err(at_point(&sweep, number))?;
            complete += done;
            all += rounds;
        }
        record::create_directory(directory)?;
        let lock = record::lock(directory)?;
        // Checked again under the lock.
        sweep.check_grid(directory)?;
        let summary = |point: &Point| {
            let place = directory.join(Sweep::directory_name(point.run_of));
            record::remove_partial(&place);
            RunDirectory::check_experiment(&place, &point.experiment)?;
            RunDirectory::read_summary(&place)
        };
        let done = sweep.points().iter().map(summary).collect::<Result<_, _>>()?;
        Ok(Self {
            sweep,
            directory: directory.to_path_buf(),
            threads,
            done,
            rounds: (complete, all),
            _lock: lock,
        })
    }

    /// Fails if a directory holds another sweep, or the run of another experiment as a point. The directory is not entered.
    pub fn check(sweep: &Sweep, directory: &Path) -> Result<(), SimError> {
        sweep.check_grid(directory)?;
        sweep.runs().try_for_each(|number| {
            let place = directory.join(Sweep::directory_name(number));
            RunDirectory::check_experiment(&place, &sweep.points()[number].experiment)
                .map_err(at_point(sweep, number))
        })
    }

    /// The grid of experiments.
    pub fn sweep(&self) -> &Sweep {
        &self.sweep
    }

    /// The directory that holds all runs and the table.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The points whose runs are not complete, from 0.
    pub fn to_do(&self) -> impl Iterator<Item = usize> {
        self.sweep.runs().filter(|&number| self.done[number].is_none())
    }

    /// Rounds of the runs that were complete when the sweep was prepared, and of all runs, over all trials. The rounds of a run
    /// that was interrupted are reported when it resumes.
    pub fn rounds(&self) -> (u64, u64) {
        self.rounds
    }

    /// The summaries of all points that are done.
    pub fn summaries(&self) -> impl Iterator<Item = &Summary> {
        self.done.iter().flatten()
    }

    /// The table of all points that are done.
    pub fn table(&self) -> SweepTable {
        SweepTable::new(&self.sweep, &self.done)
    }

    /// Runs one point after another until `stop` is set; returns the rounds done. A stopped sweep can be resumed.
    pub fn run(
        &mut self,
        watch: &(dyn Fn(SweepEvent<'_>) + Sync),
        stop: &AtomicBool,
    ) -> Result<u64, SimError> {
        let mut rounds_done = 0;
        for number in self.to_do().collect::<Vec<_>>() {
            if stop.load(Ordering::Relaxed) {
                return Err(SimError::Stopped { directory: self.directory.clone() });
            }
            let point = &self.sweep.points()[number];
            let place = self.place(number);
            let run = || {
                let run = PreparedRun::new(&point.experiment, &place, Entry::ResumeOrNew, self.threads)?;
                watch(SweepEvent::PointBegins { number, point, federation: run.federation() });
                run.run(&|event| watch(SweepEvent::Run(event)), stop)
            };
            let outcome = run().map_err(|error| match error {
                SimError::Stopped { .. } => SimError::Stopped { directory: self.directory.clone() },
                error => at_point(&self.sweep, number)(error),
            })?;
            rounds_done += outcome.rounds_done;
            self.finish(number, &outcome.summary)?;
            watch(SweepEvent::PointEnds { number });
        }
        // A sweep that was complete before still gets the table of this version.
        self.write_table()?;
        Ok(rounds_done)
    }

    /// Imports the files of a point's run, which was done elsewhere, into its directory.
    pub fn put(
        &mut self,
        number: usize,
        files: impl IntoIterator<Item = (PathBuf, Vec<u8>)>,
    ) -> Result<(), SimError> {
        let place = self.place(number);
        record::put(&place, files)?;
        let missing = || SimError::Missing { path: RunDirectory::summary_file(&place) };
        let summary = RunDirectory::read_summary(&place)?.ok_or_else(missing)?;
        self.finish(number, &summary)
    }

    /// Writes `sweep.csv` with a row for every point that is done.
    pub fn write_table(&self) -> Result<(), SimError> {
        self.table().write(&self.directory)
    }

    fn place(&self, number: usize) -> PathBuf {
        self.directory.join(Sweep::directory_name(number))
    }

    /// Records the summary of a run for all points of the same experiment.
    fn finish(&mut self, number: usize, summary: &Summary) -> Result<(), SimError> {
        for (point, done) in self.sweep.points().iter().zip(&mut self.done) {
            if point.run_of == number {
                *done = Some(summary.clone());
            }
        }
        self.write_table()
    }
}

impl Sweep {
    /// Fails if a directory holds something else than a sweep, a sweep of other keys, or runs that are not points of this one. The
    /// experiments of the points are not compared.
    fn check_grid(&self, directory: &Path) -> Result<(), SimError> {
        record::require_directory(directory)?;
        let other = |reason: String| SimError::OtherSweep { directory: directory.to_path_buf(), reason };
        let keys: Vec<&str> = self.keys().collect();
        let table = SweepTable::read(directory).ok();
        let is_sweep = table.is_some() || Self::runs_in(directory) > 0;
        let is_run = RunDirectory::experiment_file(directory).exists();
        // A sweep that was killed before its first run leaves a lock file, or a run that was imported in part.
        let is_ours =
            |name: &str| name == "lock" || (name.starts_with(".point-") && name.ends_with(".partial"));
        if is_run || (!is_sweep && record::has_other_files(directory, is_ours)?) {
            return Err(SimError::NotASweep { directory: directory.to_path_buf() });
        }
        // A table that cannot be read is written again.
        if let Some(table) = table {
            if table.keys != keys {
                let (theirs, ours) = (table.keys.join(", "), keys.join(", "));
                return Err(other(format!("it varies {theirs} there and {ours} here")));
            }
            if let Some(row) = table.rows.iter().find(|row| row.point > self.points().len()) {
                let points = self.points().len();
                return Err(other(format!("its table has point {}, and this sweep has {points}", row.point)));
            }
        }
        let beyond = Self::numbers_in(directory)
            .into_iter()
            .filter(|&number| self.points().get(number).is_none_or(|point| point.run_of != number));
        match beyond.min() {
            None => Ok(()),
            Some(number) => {
                let name = Self::directory_name(number);
                Err(other(format!("{name} is there, which is not a run of this sweep")))
            }
        }
    }

    /// The points that have a run directory in a directory, counted from 0, in any order.
    fn numbers_in(directory: &Path) -> Vec<usize> {
        let number = |name: String| {
            let number = name.strip_prefix("point-")?.parse::<usize>().ok()?.checked_sub(1)?;
            (Self::directory_name(number) == name).then_some(number)
        };
        let entries = fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok);
        let directories = entries.filter(|entry| entry.path().is_dir());
        directories.filter_map(|entry| number(entry.file_name().into_string().ok()?)).collect()
    }

    /// Number of runs in a directory, complete or not.
    pub fn runs_in(directory: &Path) -> usize {
        Self::numbers_in(directory).len()
    }
}

/// Adds the point, counted from 0, to an error.
fn at_point(sweep: &Sweep, number: usize) -> impl Fn(SimError) -> SimError {
    let point = sweep.describe(number);
    move |error| SimError::Point { point: point.clone(), error: Box::new(error) }
}
