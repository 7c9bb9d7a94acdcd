//! `sweep.csv`: one row per point that is done.

use std::path::{Path, PathBuf};

use floras_phy::Cost;

use super::grid::Sweep;
use crate::error::SimError;
use crate::record;
use crate::summary::{Estimate, Finals, Summary};

/// The columns after the keys that vary.
const MEASURED: &str = "run,trials,diverged,train_loss_mean,train_loss_ci95,test_loss_mean,test_loss_ci95,\
                        test_accuracy_mean,test_accuracy_ci95";
/// The columns after those: what a trial cost on the air. Tables of earlier versions do not have them.
const COST: &str = "payload_uses,pilot_uses,control_uses,energy,power_mean,power_peak,dynamic_range_db";

/// The content of `sweep.csv`.
#[derive(Clone, Debug, PartialEq)]
pub struct SweepTable {
    /// The keys that vary.
    pub keys: Vec<String>,
    /// The points that are done.
    pub rows: Vec<SweepRow>,
}

/// A point that is done.
#[derive(Clone, Debug, PartialEq)]
pub struct SweepRow {
    /// The point's number, from 1.
    pub point: usize,
    /// The values of the keys, as TOML, text without its quotes.
    pub values: Vec<String>,
    /// The name of its run directory, which points of the same experiment share.
    pub run: String,
    /// Trials of its run.
    pub trials: usize,
    /// Trials that diverged.
    pub diverged: usize,
    /// Final values over the trials that finished; `None` if all diverged.
    pub finals: Option<Finals>,
    /// What a trial cost on the air, as in [`Summary::cost`].
    pub cost: Option<Cost>,
}

impl SweepTable {
    /// Where the directory of a sweep keeps its table.
    pub fn file(directory: &Path) -> PathBuf {
        directory.join("sweep.csv")
    }

    /// A row for every point with a summary.
    pub(super) fn new(sweep: &Sweep, done: &[Option<Summary>]) -> Self {
        let row = |(number, (point, summary)): (usize, (&super::Point, &Option<Summary>))| {
            let summary = summary.as_ref()?;
            Some(SweepRow {
                point: number + 1,
                values: point.values.clone(),
                run: Sweep::directory_name(point.run_of),
                trials: summary.trials.len(),
                diverged: summary.diverged().len(),
                finals: summary.finals,
                cost: summary.cost,
            })
        };
        let rows = sweep.points().iter().zip(done).enumerate().filter_map(row).collect();
        Self { keys: sweep.keys().map(str::to_owned).collect(), rows }
    }

    /// Reads the table of a sweep's directory.
    pub fn read(directory: &Path) -> Result<Self, SimError> {
        let path = Self::file(directory);
        let text = record::read_text(&path)?;
        let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
        let rows = reader.records().collect::<Result<Vec<_>, _>>();
        let rows = rows.map_err(|error| SimError::damaged(&path, error))?;
        let header: Vec<&str> = rows.first().into_iter().flatten().collect();
        let measured: Vec<&str> = MEASURED.split(',').collect();
        let cost: Vec<&str> = COST.split(',').collect();
        let (header, has_cost) = match header.strip_suffix(&cost[..]) {
            Some(rest) => (rest, true),
            None => (&header[..], false),
        };
        let Some(keys) = header.strip_prefix(&["point"]).and_then(|rest| rest.strip_suffix(&measured[..]))
        else {
            return Err(SimError::damaged(&path, "its first line is not that of a sweep"));
        };
        let row = |(number, row): (usize, &csv::StringRecord)| {
            let damaged = || SimError::damaged(&path, format!("row {number} is not that of a point"));
            SweepRow::read(&row.iter().collect::<Vec<_>>(), has_cost).ok_or_else(damaged)
        };
        let keys = keys.iter().map(|&key| key.to_owned()).collect();
        Ok(Self { keys, rows: rows.iter().enumerate().skip(1).map(row).collect::<Result<_, _>>()? })
    }

    pub(super) fn write(&self, directory: &Path) -> Result<(), SimError> {
        let path = Self::file(directory);
        let bytes = self.to_bytes().map_err(|error| SimError::encoding(&path, error))?;
        record::write_atomically(&path, &bytes)
    }

    fn to_bytes(&self) -> Result<Vec<u8>, csv::Error> {
        let mut out = csv::Writer::from_writer(Vec::new());
        let keys = self.keys.iter().map(String::as_str);
        out.write_record(
            ["point"].into_iter().chain(keys).chain(MEASURED.split(',')).chain(COST.split(',')),
        )?;
        self.rows.iter().try_for_each(|row| out.write_record(row.cells()))?;
        out.into_inner().map_err(|error| error.into_error().into())
    }
}

impl SweepRow {
    fn cells(&self) -> Vec<String> {
        let mut cells = vec![self.point.to_string()];
        cells.extend(self.values.iter().cloned());
        cells.extend([self.run.clone(), self.trials.to_string(), self.diverged.to_string()]);
        let finals = self.finals.map(|finals| [finals.train_loss, finals.test_loss, finals.test_accuracy]);
        let text = |number: Option<f64>| number.map_or_else(String::new, |number| number.to_string());
        for estimate in finals.map_or([None; 3], |finals| finals.map(Some)) {
            cells.push(text(estimate.map(|estimate| estimate.mean)));
            cells.push(text(estimate.and_then(|estimate| estimate.ci95)));
        }
        match self.cost {
            None => cells.resize(cells.len() + COST.split(',').count(), String::new()),
            Some(cost) => {
                let uses = [cost.payload_uses, cost.pilot_uses, cost.control_uses];
                cells.extend(uses.map(|uses| uses.to_string()));
                let numbers = [cost.energy, cost.power_mean, cost.power_peak].map(Some);
                cells.extend(numbers.into_iter().chain([cost.dynamic_range_db]).map(text));
            }
        }
        cells
    }

    fn read(cells: &[&str], has_cost: bool) -> Option<Self> {
        let (cells, cost) = match has_cost {
            false => (cells, None),
            true => {
                let (cells, cost) = cells.split_last_chunk::<7>()?;
                (cells, read_cost(cost)?)
            }
        };
        let (point, rest) = cells.split_first()?;
        let (values, [run, trials, diverged, finals @ ..]) = rest.split_last_chunk::<9>()?;
        // The name becomes part of a path.
        run.strip_prefix("point-")?.parse::<u32>().ok()?;
        let estimate = |place: usize| {
            let ci95 = Some(finals[place + 1]).filter(|ci95| !ci95.is_empty());
            Some(Estimate { mean: finals[place].parse().ok()?, ci95: ci95.map(str::parse).transpose().ok()? })
        };
        let finals = match finals.concat().as_str() {
            "" => None,
            _ => Some(Finals {
                train_loss: estimate(0)?,
                test_loss: estimate(2)?,
                test_accuracy: estimate(4)?,
            }),
        };
        Some(Self {
            point: point.parse().ok()?,
            values: values.iter().map(|&value| value.to_owned()).collect(),
            run: (*run).to_owned(),
            trials: trials.parse().ok()?,
            diverged: diverged.parse().ok()?,
            finals,
            cost,
        })
    }
}

/// The columns of [`COST`]; the outer `None` if they are damaged.
fn read_cost(cells: &[&str; 7]) -> Option<Option<Cost>> {
    if cells.concat().is_empty() {
        return Some(None);
    }
    let [payload, pilot, control, energy, mean, peak, range] = cells;
    let range = Some(range).filter(|range| !range.is_empty());
    Some(Some(Cost {
        power_mean: mean.parse().ok()?,
        power_peak: peak.parse().ok()?,
        dynamic_range_db: range.map(|range| range.parse()).transpose().ok()?,
        payload_uses: payload.parse().ok()?,
        pilot_uses: pilot.parse().ok()?,
        control_uses: control.parse().ok()?,
        energy: energy.parse().ok()?,
    }))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn row(point: usize, value: &str, finals: Option<Finals>) -> SweepRow {
        let (values, run) = (vec![value.to_owned(), "iid".to_owned()], format!("point-{point:03}"));
        let range = (point > 2).then_some(20.5);
        let cost = Cost {
            payload_uses: 9,
            energy: 0.1,
            power_mean: 0.2,
            dynamic_range_db: range,
            ..Cost::default()
        };
        SweepRow { point, values, run, trials: 3, diverged: 1, finals, cost: finals.map(|_| cost) }
    }

    #[test]
    fn a_table_is_read_as_it_was_written() {
        let directory = tempfile::tempdir().unwrap();
        let estimate = |mean: f64, ci95| Estimate { mean, ci95 };
        let finals = Finals {
            train_loss: estimate(0.1 + 0.2, Some(1e-9)),
            test_loss: estimate(2.5, None),
            test_accuracy: estimate(0.9, Some(0.01)),
        };
        let table = SweepTable {
            keys: vec!["uplink.receiver".to_owned(), "data.partition".to_owned()],
            rows: vec![
                row(1, "{ clipped = 1.0, \"x\" }", Some(finals)),
                row(3, "mmse", Some(finals)),
                row(4, "paper", None),
            ],
        };
        table.write(directory.path()).unwrap();
        assert_eq!(SweepTable::read(directory.path()).unwrap(), table);
    }

    #[test]
    fn a_table_without_cost_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let text = format!("point,rounds,{MEASURED}\n1,3,point-001,2,0,0.5,,0.6,,0.9,\n");
        fs::write(SweepTable::file(directory.path()), text).unwrap();
        let table = SweepTable::read(directory.path()).unwrap();
        assert_eq!((&table.keys[..], table.rows[0].cost), (&["rounds".to_owned()][..], None));
        assert_eq!(table.rows[0].finals.unwrap().test_accuracy.mean, 0.9);
    }

    #[test]
    fn a_damaged_row_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let table = SweepTable {
            keys: vec!["rounds".to_owned(), "seed".to_owned()],
            rows: vec![row(1, "3", None), row(2, "4", None)],
        };
        table.write(directory.path()).unwrap();
        let whole = fs::read_to_string(SweepTable::file(directory.path())).unwrap();
        for (sound, damaged) in [("point-002", "../../etc"), (",3,1,,,", ",3,x,,,"), ("2,4", "-2,4")] {
            let (first, last) = whole.split_at(whole.rfind("2,4").unwrap());
            let text = format!("{first}{}", last.replace(sound, damaged));
            fs::write(SweepTable::file(directory.path()), &text).unwrap();
            let error = SweepTable::read(directory.path()).unwrap_err().to_string();
            assert!(error.contains("row 2 is not that of a point"), "{error} in {text}");
        }
    }
}
