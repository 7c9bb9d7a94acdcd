//! What was reconstructed.

use serde::{Deserialize, Serialize};

use crate::presentation::{Cell, Part, Section};

/// Digits from updates.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ReconstructionAttack {
    /// Pixels of a row.
    pub width: usize,
    /// Pixels of a column.
    pub height: usize,
    /// What the clients hold, from 0 (black) to 255 (white).
    pub originals: Vec<Vec<u8>>,
    /// What was made of it.
    pub rows: Vec<ReconstructionRow>,
    /// The settings, in words.
    pub settings: Vec<(String, String)>,
}

/// One way to look, at one SNR.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ReconstructionRow {
    /// `despread update` or `decoded sum`.
    pub source: String,
    /// The signal-to-noise ratio; `None` where there is no channel.
    pub snr_db: Option<f64>,
    /// One for each original.
    pub images: Vec<Vec<u8>>,
    /// Between each original and what was made of it.
    pub correlations: Vec<f64>,
}

impl ReconstructionRow {
    /// What was looked at.
    pub fn name(&self) -> String {
        match self.snr_db {
            Some(snr_db) => format!("{}, {snr_db} dB", self.source),
            None => self.source.clone(),
        }
    }

    /// The mean over all images.
    pub fn mean_correlation(&self) -> f64 {
        self.correlations.iter().sum::<f64>() / self.correlations.len().max(1) as f64
    }
}

impl ReconstructionAttack {
    /// Whether every picture has as many pixels as it should; pictures may be left out altogether.
    pub fn is_whole(&self) -> bool {
        let pixels = self.width.checked_mul(self.height);
        let sound = |images: &[Vec<u8>]| images.iter().all(|image| Some(image.len()) == pixels);
        let rows = self.rows.iter().all(|row| {
            let as_many = row.images.len() == self.originals.len();
            sound(&row.images) && as_many && row.correlations.iter().all(|value| value.is_finite())
        });
        pixels.is_some_and(|pixels| pixels > 0) && sound(&self.originals) && rows
    }

    pub(crate) fn section(&self) -> Section<'_> {
        let is_despread = self.rows.iter().any(|row| row.source == "despread update");
        let despread = if is_despread {
            " of the update on each client's own sequence, which a base station has that keeps its radio samples (clients in a \
             deep fade stay hidden), and"
        } else {
            ""
        };
        let explanation = format!(
            "The gradient of one sample shows the sample. Each client took one step on one of its pictures and sent the change. The \
             first row has the pictures; below it is what was made{despread} of the decoded sum, which is all that the scheme means \
             to give out. A sum gives one picture of each class."
        );
        let row =
            |row: &ReconstructionRow| vec![Cell::text(row.name()), Cell::Number(row.mean_correlation(), 3)];
        let heading = vec!["what was looked at", "mean correlation with the original"];
        Section {
            title: "What the updates show",
            parts: vec![
                Part::Explanation(explanation),
                Part::Pictures(self),
                Part::Table { heading, rows: self.rows.iter().map(row).collect() },
            ],
        }
    }
}
