//! Results of the reconstruction.

use serde::{Deserialize, Serialize};

use crate::presentation::{Cell, Part, Section};

/// Pictures reconstructed from updates.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ReconstructionAttack {
    /// Pixels per row.
    pub width: usize,
    /// Pixels per column.
    pub height: usize,
    /// The clients' samples, from 0 (black) to 255 (white).
    pub originals: Vec<Vec<u8>>,
    /// The reconstructions, one row per source and SNR.
    pub rows: Vec<ReconstructionRow>,
    /// The settings, in words.
    pub settings: Vec<(String, String)>,
}

/// One source at one SNR.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ReconstructionRow {
    /// `despread update` or `decoded sum`.
    pub source: String,
    /// The signal-to-noise ratio; `None` where there is no channel.
    pub snr_db: Option<f64>,
    /// One reconstruction per original.
    pub images: Vec<Vec<u8>>,
    /// Correlation of each reconstruction with its original.
    pub correlations: Vec<f64>,
}

impl ReconstructionRow {
    /// Source and SNR in words.
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
    /// Whether every picture has the right number of pixels; pictures may be omitted altogether.
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
            " the despread update of each client, available to a base station that stores its radio samples (clients in a deep \
             fade stay hidden), and from"
        } else {
            ""
        };
        let explanation = format!(
            "The gradient of one sample reveals the sample. Each client took one step on one of its pictures and sent the update. \
             The first row shows the pictures. Below are reconstructions from{despread} the decoded sum, the only intended \
             output of the scheme. A sum yields one picture per class."
        );
        let row =
            |row: &ReconstructionRow| vec![Cell::text(row.name()), Cell::Number(row.mean_correlation(), 3)];
        let heading = vec!["source", "mean correlation with the original"];
        Section {
            title: "Pictures from updates",
            parts: vec![
                Part::Explanation(explanation),
                Part::Pictures(self),
                Part::Table { heading, rows: self.rows.iter().map(row).collect() },
            ],
        }
    }
}
