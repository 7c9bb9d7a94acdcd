//! The section `[privacy]`: what limits a client's influence.

use toml::Table;

use super::error::ExperimentError;
use super::section::Section;
use super::write::Write;

/// The section `[privacy]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrivacySettings {
    /// `C`; absent means that updates go out as they are.
    pub clip: Option<f64>,
    /// How updates are brought to norm `C`.
    pub normalise: Normalise,
    /// `δ` of the privacy statement. Recorded; the accounting that reads it is not part of this version.
    pub delta: f64,
}

/// How updates are brought to norm `C`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Normalise {
    /// Each on its own: longer ones are scaled down.
    #[default]
    Clip,
    /// All together: centred, and scaled so that the longest has norm `C`.
    Paper,
}

impl PrivacySettings {
    pub(super) fn read(table: &Table) -> Result<Self, ExperimentError> {
        let section = Section::open(table, "privacy", &["clip", "normalise", "delta", "budget"])?;
        if section.value("budget").is_some() {
            let reason =
                "this version has no privacy accounting yet, and cannot keep a budget; leave the key out";
            return Err(ExperimentError::refused("privacy.budget", reason));
        }
        let modes = [("clip", Normalise::Clip), ("paper", Normalise::Paper)];
        Ok(Self {
            clip: section.number_or_none(
                "clip",
                1e-30..=1e30,
                "a number between 1e-30 and 1e30, or \"none\"",
            )?,
            normalise: section.one_of("normalise", &modes)?.unwrap_or_default(),
            delta: section.number("delta", 1e-300..=0.5, "a number above 0 and at most 0.5")?.unwrap_or(1e-5),
        })
    }

    pub(super) fn write(&self, out: &mut Write) {
        match (self.clip, self.normalise) {
            (None, _) => out.key("clip", "none"),
            (Some(clip), mode) => {
                out.key("clip", clip);
                let mode = match mode {
                    Normalise::Clip => "clip",
                    Normalise::Paper => "paper",
                };
                out.key("normalise", mode);
            }
        }
        out.key("delta", self.delta);
    }
}
