//! `sweep.csv`: one row per point that is done.

use std::path::{Path, PathBuf};

use floras_core::View;
use floras_core::verdict::Verdict;
use floras_phy::Cost;

use super::grid::{Point, Sweep};
use crate::error::SimError;
use crate::record;
use crate::summary::{Estimate, Finals, Summary};

/// The columns after the keys that vary: results, cost on the air, and privacy.
const COLUMNS: [&str; 21] = [
    "run",
    "trials",
    "diverged",
    "train_loss_mean",
    "train_loss_ci95",
    "test_loss_mean",
    "test_loss_ci95",
    "test_accuracy_mean",
    "test_accuracy_ci95",
    "payload_uses",
    "pilot_uses",
    "control_uses",
    "energy",
    "power_mean",
    "power_peak",
    "dynamic_range_db",
    "rounds_done",
    "view",
    "epsilon",
    "verdict",
    "epsilon_above",
];
/// Number of these columns in tables of this version and of earlier ones, which end before `epsilon_above`, privacy or cost.
const LENGTHS: [usize; 4] = [COLUMNS.len(), 20, 16, 9];

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
    /// Number of trials of the point.
    pub trials: usize,
    /// Number of trials that diverged, from 0 to `trials`.
    pub diverged: usize,
    /// Final values over the trials that finished; `None` if all diverged.
    pub finals: Option<Finals>,
    /// Cost of a trial on the air, as in [`Summary::cost`].
    pub cost: Option<Cost>,
    /// `ε` in the view that the experiment quotes; `None` in tables of earlier versions.
    pub privacy: Option<PointPrivacy>,
}

/// The privacy of a point in the view that its experiment quotes: `privacy.view`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PointPrivacy {
    /// Rounds that `epsilon` covers: the maximum that a trial did.
    pub rounds_done: u32,
    /// The view in which `epsilon` is stated: `privacy.view` of the point.
    pub view: View,
    /// `ε` at the experiment's `δ`, an upper bound; `None` if there is no finite one.
    pub epsilon: Option<f64>,
    /// No `ε` up to this value is established, as in [`Statement::epsilon_above`](floras_privacy::Statement).
    pub epsilon_above: Option<f64>,
    /// The strength of `epsilon`: strong, moderate, weak, none or not proven.
    pub verdict: Verdict,
}

impl PointPrivacy {
    /// The privacy of a complete run in a view.
    pub fn new(summary: &Summary, view: View) -> Self {
        let statement = summary.privacy.views.get(view);
        let epsilon = statement.and_then(|statement| statement.epsilon);
        let is_proven = statement.is_some_and(|statement| statement.guarantee);
        let verdict = Verdict::of(epsilon, is_proven);
        let epsilon_above = statement.and_then(|statement| statement.epsilon_above);
        Self { rounds_done: summary.privacy.rounds, view, epsilon, epsilon_above, verdict }
    }
}

impl SweepTable {
    /// The path of the table in a sweep's directory.
    pub fn file(directory: &Path) -> PathBuf {
        directory.join("sweep.csv")
    }

    /// A row for every point with a summary.
    pub(super) fn new(sweep: &Sweep, done: &[Option<Summary>]) -> Self {
        let row = |(number, (point, summary)): (usize, (&Point, &Option<Summary>))| {
            let summary = summary.as_ref()?;
            let view = point.experiment.settings().privacy.view;
            Some(SweepRow {
                point: number + 1,
                values: point.values.clone(),
                run: Sweep::directory_name(point.run_of),
                trials: summary.trials.len(),
                diverged: summary.diverged().len(),
                finals: summary.finals,
                cost: summary.cost,
                privacy: Some(PointPrivacy::new(summary, view)),
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
        let keys = header
            .strip_prefix(&["point"])
            .and_then(|rest| LENGTHS.iter().find_map(|&length| rest.strip_suffix(&COLUMNS[..length])));
        let Some(keys) = keys else {
            return Err(SimError::damaged(&path, "its first line is not that of a sweep"));
        };
        let row = |(number, row): (usize, &csv::StringRecord)| {
            let damaged = || SimError::damaged(&path, format!("row {number} is not that of a point"));
            SweepRow::read(&row.iter().collect::<Vec<_>>(), keys.len()).ok_or_else(damaged)
        };
        let rows = rows.iter().enumerate().skip(1).map(row).collect::<Result<_, _>>()?;
        Ok(Self { keys: keys.iter().map(|&key| key.to_owned()).collect(), rows })
    }

    pub(super) fn write(&self, directory: &Path) -> Result<(), SimError> {
        let path = Self::file(directory);
        let bytes = self.to_bytes().map_err(|error| SimError::encoding(&path, error))?;
        record::write_atomically(&path, &bytes)
    }

    fn to_bytes(&self) -> Result<Vec<u8>, csv::Error> {
        let mut out = csv::Writer::from_writer(Vec::new());
        let keys = self.keys.iter().map(String::as_str);
        out.write_record(["point"].into_iter().chain(keys).chain(COLUMNS))?;
        self.rows.iter().try_for_each(|row| out.write_record(row.cells()))?;
        out.into_inner().map_err(|error| error.into_error().into())
    }
}

impl SweepRow {
    fn cells(&self) -> Vec<String> {
        let text = |number: Option<f64>| number.map_or_else(String::new, |number| number.to_string());
        let mut cells = vec![self.point.to_string()];
        cells.extend(self.values.iter().cloned());
        cells.extend([self.run.clone(), self.trials.to_string(), self.diverged.to_string()]);
        let finals = self.finals.map(|finals| [finals.train_loss, finals.test_loss, finals.test_accuracy]);
        for estimate in finals.map_or([None; 3], |finals| finals.map(Some)) {
            cells.push(text(estimate.map(|estimate| estimate.mean)));
            cells.push(text(estimate.and_then(|estimate| estimate.ci95)));
        }
        cells.extend(self.cost.map_or_else(<[String; 7]>::default, |cost| {
            let Cost { payload_uses, pilot_uses, control_uses, .. } = cost;
            let [payload, pilot, control] =
                [payload_uses, pilot_uses, control_uses].map(|uses| uses.to_string());
            let [energy, mean, peak] =
                [cost.energy, cost.power_mean, cost.power_peak].map(|value| text(Some(value)));
            [payload, pilot, control, energy, mean, peak, text(cost.dynamic_range_db)]
        }));
        cells.extend(self.privacy.map_or_else(<[String; 5]>::default, |privacy| {
            let PointPrivacy { rounds_done, view, epsilon, epsilon_above, verdict } = privacy;
            let (epsilon, above) = (text(epsilon), text(epsilon_above));
            [rounds_done.to_string(), view.to_string(), epsilon, verdict.to_string(), above]
        }));
        cells
    }

    /// Reads a row with this number of keys; `None` if it is damaged.
    fn read(cells: &[&str], keys: usize) -> Option<Self> {
        let (point, rest) = cells.split_first()?;
        let (values, cells) = rest.split_at_checked(keys)?;
        // Columns that a table of an earlier version lacks are empty.
        let cell = |name: &str| {
            let place = COLUMNS.iter().position(|&column| column == name)?;
            Some(cells.get(place).copied().unwrap_or_default())
        };
        let number = |name: &str| cell(name)?.parse::<f64>().ok();
        let count = |name: &str| cell(name)?.parse::<usize>().ok();
        let uses = |name: &str| cell(name)?.parse::<u64>().ok();
        // The outer `None` if the cell is damaged, the inner one if it is empty.
        let optional = |name: &str| match cell(name)? {
            "" => Some(None),
            text => text.parse::<f64>().ok().map(Some),
        };
        let run = cell("run")?;
        // The name becomes part of a path.
        run.strip_prefix("point-")?.parse::<u32>().ok()?;
        let estimate = |mean: &str, ci95: &str| Some(Estimate { mean: number(mean)?, ci95: optional(ci95)? });
        let finals = match cells.get(3..9)?.concat().as_str() {
            "" => None,
            _ => Some(Finals {
                train_loss: estimate("train_loss_mean", "train_loss_ci95")?,
                test_loss: estimate("test_loss_mean", "test_loss_ci95")?,
                test_accuracy: estimate("test_accuracy_mean", "test_accuracy_ci95")?,
            }),
        };
        let cost = match cells.get(9..16).map(<[&str]>::concat).unwrap_or_default().as_str() {
            "" => None,
            _ => Some(Cost {
                payload_uses: uses("payload_uses")?,
                pilot_uses: uses("pilot_uses")?,
                control_uses: uses("control_uses")?,
                energy: number("energy")?,
                power_mean: number("power_mean")?,
                power_peak: number("power_peak")?,
                dynamic_range_db: optional("dynamic_range_db")?,
            }),
        };
        let privacy = match cell("view")? {
            "" => None,
            view => Some(PointPrivacy {
                rounds_done: cell("rounds_done")?.parse().ok()?,
                view: view.parse().ok()?,
                epsilon: optional("epsilon")?,
                epsilon_above: optional("epsilon_above")?,
                verdict: Verdict::ALL.into_iter().find(|verdict| cell("verdict") == Some(verdict.label()))?,
            }),
        };
        Some(Self {
            point: point.parse().ok()?,
            values: values.iter().map(|&value| value.to_owned()).collect(),
            run: run.to_owned(),
            trials: count("trials")?,
            diverged: count("diverged")?,
            finals,
            cost,
            privacy,
        })
    }
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
        let privacy = finals.map(|_| PointPrivacy {
            rounds_done: 7,
            view: View::RawSignal,
            epsilon: (point > 2).then_some(0.1 + 0.2),
            epsilon_above: (point <= 2).then_some(1e5),
            verdict: if point > 2 { Verdict::NotProven } else { Verdict::None },
        });
        SweepRow { point, values, run, trials: 3, diverged: 1, finals, cost: finals.map(|_| cost), privacy }
    }

    #[test]
    fn tables_are_read_as_written() {
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
    fn tables_of_earlier_versions_are_read() {
        let directory = tempfile::tempdir().unwrap();
        let cost = ",9,1,0,0.5,0.25,1.5,";
        for (length, more) in [(9, ""), (16, cost)] {
            let columns = COLUMNS[..length].join(",");
            let text = format!("point,rounds,{columns}\n1,3,point-001,2,0,0.5,,0.6,,0.9,{more}\n");
            fs::write(SweepTable::file(directory.path()), text).unwrap();
            let table = SweepTable::read(directory.path()).unwrap();
            assert_eq!(table.keys, ["rounds"]);
            assert_eq!(table.rows[0].finals.unwrap().test_accuracy.mean, 0.9);
            assert_eq!((table.rows[0].cost.is_some(), table.rows[0].privacy), (length > 9, None));
        }
    }

    #[test]
    fn damaged_rows_are_named() {
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
