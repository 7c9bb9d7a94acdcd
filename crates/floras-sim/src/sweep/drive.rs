//! Driving a sweep: a run for every point that differs, each in a directory of its own, and the table of all.
//!
//! Runs may also be done elsewhere: [`PreparedSweep::to_do`] lists what is left, and [`PreparedSweep::put`] takes in the
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

/// What happens in a sweep, for whoever watches.
#[derive(Debug)]
pub enum SweepEvent<'a> {
    /// The run of a point begins, or goes on.
    PointBegins {
        /// From 0.
        number: usize,
        /// Its values and its experiment.
        point: &'a Point,
        /// What is run.
        federation: &'a Federation,
    },
    /// Something happens in its run.
    Run(Event),
    /// The run is complete, and in the table.
    PointEnds {
        /// From 0.
        number: usize,
    },
}

/// A sweep whose points were all checked and whose directory is taken: ready to run.
#[derive(Debug)]
pub struct PreparedSweep {
    sweep: Sweep,
    directory: PathBuf,
    threads: usize,
    /// One for each point, as far as its run is complete.
    done: Vec<Option<Summary>>,
    _lock: File,
}

impl PreparedSweep {
    /// Loads what every point needs, so that what cannot work is reported before the first one runs, and takes the directory.
    /// A run of another experiment in the place of a point is refused.
    pub fn new(sweep: Sweep, directory: &Path, threads: usize) -> Result<Self, SimError> {
        for number in sweep.runs() {
            Federation::new(&sweep.points()[number].experiment)?.check_memory(threads)?;
        }
        if directory.exists() && !directory.is_dir() {
            return Err(SimError::NotADirectory { path: directory.to_path_buf() });
        }
        fs::create_dir_all(directory).map_err(SimError::file("create", directory))?;
        let lock = record::lock(directory)?;
        let summary = |point: &Point| {
            let place = directory.join(Sweep::directory_name(point.run_of));
            record::remove_partial(&place);
            RunDirectory::refuse_other(&place, &point.experiment)?;
            RunDirectory::read_summary(&place)
        };
        let done = sweep.points().iter().map(summary).collect::<Result<_, _>>()?;
        Ok(Self { sweep, directory: directory.to_path_buf(), threads, done, _lock: lock })
    }

    /// The grid.
    pub fn sweep(&self) -> &Sweep {
        &self.sweep
    }

    /// Where everything is recorded.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The points whose runs are not complete, from 0.
    pub fn to_do(&self) -> impl Iterator<Item = usize> {
        self.sweep.runs().filter(|&number| self.done[number].is_none())
    }

    /// The summaries of all points that are done.
    pub fn summaries(&self) -> impl Iterator<Item = &Summary> {
        self.done.iter().flatten()
    }

    /// Runs one point after another until someone sets `stop`; returns the rounds done. What is recorded by then can be
    /// resumed.
    pub fn run(
        &mut self,
        watch: &(dyn Fn(SweepEvent<'_>) + Sync),
        stop: &AtomicBool,
    ) -> Result<u64, SimError> {
        let mut rounds_done = 0;
        for number in self.sweep.runs().collect::<Vec<_>>() {
            if stop.load(Ordering::Relaxed) {
                return Err(SimError::Stopped { directory: self.directory.clone() });
            }
            let point = &self.sweep.points()[number];
            let place = self.place(number);
            let run = PreparedRun::new(&point.experiment, &place, Entry::ResumeOrNew, self.threads)?;
            watch(SweepEvent::PointBegins { number, point, federation: run.federation() });
            let outcome = run.run(&|event| watch(SweepEvent::Run(event)), stop)?;
            rounds_done += outcome.rounds_done;
            self.finish(number, &outcome.summary)?;
            watch(SweepEvent::PointEnds { number });
        }
        Ok(rounds_done)
    }

    /// Puts the files of a point's run, which was done elsewhere, into their place.
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
        SweepTable::new(&self.sweep, &self.done).write(&self.directory)
    }

    fn place(&self, number: usize) -> PathBuf {
        self.directory.join(Sweep::directory_name(number))
    }

    /// The run of a point stands for all points of the same experiment.
    fn finish(&mut self, number: usize, summary: &Summary) -> Result<(), SimError> {
        for (point, done) in self.sweep.points().iter().zip(&mut self.done) {
            if point.run_of == number {
                *done = Some(summary.clone());
            }
        }
        self.write_table()
    }
}
