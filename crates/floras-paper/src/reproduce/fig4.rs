//! Figure 4: FLORAS compared with channel inversion at 0 and 15 dB.
//!
//! The paper does not specify how channel inversion sets its power, nor whether its decoded values are truncated. Both
//! determine the outcome. The figure uses a convention that approximates the paper's numbers. For comparison it also shows
//! channel inversion without truncation and under two more favourable rules, and FLORAS with `B ≫ C` as section VI requires.

use super::Workbench;
use super::claims::{FIG4, Measure};
use super::cost::Compared;
use super::learning::{Case, PARTITIONS, Runs};
use floras_core::Admission;
use floras_sim::figure::{Figure, Style};
use floras_sim::{Experiment, ExperimentBuilder, Federation, SimError};

/// The experiment of the FLORAS curve at 0 dB, IID.
pub(super) fn floras_file() -> &'static str {
    super::preset("fig4-floras")
}

fn inversion_file() -> &'static str {
    super::preset("fig4-inversion")
}

/// The curves of the paper. The constants below are curves that the paper omits.
const PAPER: [&str; 4] = ["FLORAS 15 dB", "channel inversion 15 dB", "FLORAS 0 dB", "channel inversion 0 dB"];
const FLORAS: &str = "FLORAS 0 dB";
const WORST_ADMITTED: &str = "channel inversion 0 dB, worst admitted client at full power";
const SAME_BANDWIDTH: &str = "channel inversion 0 dB, same bandwidth";
const NOT_TRUNCATED: &str = "channel inversion 0 dB, not truncated";
const WIDE: [&str; 2] = ["FLORAS 0 dB, B = 10 C", "FLORAS 15 dB, B = 10 C"];

/// The definition of cost in the report.
const COUNT: &str = "Power is relative to a symbol of amplitude 1, and energy is in channel uses at that power, of all clients together. A chip \
     is a channel use, and the receiver's noise is the same in all. Clients of channel inversion learn their channels without \
     reciprocity: K pilots, and K coefficients in the downlink.";

/// Runs the experiments of figure 4 and draws it.
pub(crate) fn fig4(bench: &Workbench<'_>) -> Result<Figure, SimError> {
    let runs = Runs::make(bench, "fig4", cases()?)?;
    let mut panels = runs.panels("fig4", &PAPER);
    for partition in PARTITIONS {
        let shown = [FLORAS, WIDE[0], PAPER[3], NOT_TRUNCATED, WORST_ADMITTED, SAME_BANDWIDTH];
        let mut panel = runs.panel("fig4-conventions", partition, Measure::Accuracy, &shown);
        panel.title = format!("{}, 0 dB: other conventions", partition.words);
        panels.push(panel);
    }
    let shown = [FLORAS, PAPER[3], WORST_ADMITTED, SAME_BANDWIDTH];
    panels.extend(runs.spending_panels("fig4", PARTITIONS[0], &shown));
    let mut claims = runs.judge(&FIG4);
    claims.extend(compared(&runs)?.iter().flat_map(Compared::claims));
    Ok(Figure {
        name: "fig4".to_owned(),
        title: "Figure 4: FLORAS against channel inversion at 0 and 15 dB".to_owned(),
        text: text(&runs),
        conventions: super::conventions(&[floras_file(), inversion_file()], 0.0)?,
        panels,
        claims,
        privacy: runs.privacy(),
        notes: [vec![super::INTERVALS.to_owned(), super::CHOICE.to_owned(), COUNT.to_owned()], runs.unmet()]
            .concat(),
    })
}

/// The runs at 0 dB whose cost Remark 1 compares.
fn compared(runs: &Runs) -> Result<Option<Compared<'_>>, SimError> {
    let experiment = Experiment::parse("fig4", inversion_file())?;
    let settings = experiment.settings();
    let admission = ExperimentBuilder::parse("fig4", &experiment.to_toml())?.get("uplink.admission");
    let admission = admission.and_then(|text| text.parse::<Admission>().ok());
    let record = |curve| runs.record(PARTITIONS[0].key, curve);
    let (Some(floras), Some(inversion)) = (record(FLORAS), record(PAPER[3])) else { return Ok(None) };
    let parameters = Federation::new(&experiment)?.model().parameters() as f64;
    Ok(Some(Compared {
        floras,
        inversion,
        limit: settings.privacy.clip.unwrap_or_default().powi(2) / parameters,
        clients: settings.clients.per_round,
        threshold: admission.unwrap_or_default().amplitude(),
    }))
}

fn text(runs: &Runs) -> Vec<String> {
    let difference = |curve: &str, than: &str| {
        let of = |partition| runs.difference_words(partition, curve, than);
        format!("{} (IID) and {} (non-IID)", of("iid"), of("one-label"))
    };
    let against = |than: &str| difference(FLORAS, than);
    vec![
        format!(
            "At 0 dB the final test accuracy of FLORAS minus that of channel inversion is {}, under a convention that approximates \
             the paper: a round is one SGD step; decoded values are truncated to B; every client of channel inversion arrives as \
             weak as one at the admission threshold does at full power, and each parameter takes one channel use, while FLORAS \
             spends L chips on it.",
            against(PAPER[3])
        ),
        format!(
            "That difference is a matter of convention. The paper introduces B for the Cauchy noise of FLORAS; if the decoded values \
             of channel inversion are not truncated, it is {}. If the weakest admitted client sends at full power, which channel \
             inversion allows, it is {}; if channel inversion may repeat each parameter L times and so spends the same bandwidth as \
             FLORAS, it is {}.",
            against(NOT_TRUNCATED),
            against(WORST_ADMITTED),
            against(SAME_BANDWIDTH)
        ),
        format!(
            "Section VI requires B ≫ C, and the figure contradicts it. With B = 10 C, FLORAS minus channel inversion is {} at 0 dB \
             and {} at 15 dB.",
            difference(WIDE[0], PAPER[3]),
            difference(WIDE[1], PAPER[1])
        ),
    ]
}

fn cases() -> Result<Vec<Case>, SimError> {
    let case = |curve, file, colour, style, settings: &[(&'static str, &str)]| Case {
        curve,
        file,
        settings: settings.iter().map(|&(key, value)| (key, value.to_owned())).collect(),
        colour,
        style,
    };
    let (floras, inversion) = (floras_file(), inversion_file());
    // The presets are the curves at 0 dB. Their SNR key may be another number, because it refers to unit power.
    let experiment = Experiment::parse("fig4", floras)?;
    let settings = experiment.settings();
    let snr_db = settings.uplink.radio.snr_db;
    let (low, high) = (snr_db.to_string(), (snr_db + 15.0).to_string());
    let (low, high) = (("uplink.snr_db", low.as_str()), ("uplink.snr_db", high.as_str()));
    let ten_c = (10.0 * settings.privacy.clip.unwrap_or_default()).to_string();
    let wide = ("uplink.truncate", ten_c.as_str());
    Ok(vec![
        case(PAPER[0], floras, 1, Style::Solid, &[high]),
        case(PAPER[1], inversion, 1, Style::Dashed, &[high]),
        case(PAPER[2], floras, 0, Style::Solid, &[low]),
        case(PAPER[3], inversion, 0, Style::Dashed, &[low]),
        case(WORST_ADMITTED, inversion, 2, Style::Dashed, &[low, ("uplink.power_rule", "worst-admitted")]),
        case(SAME_BANDWIDTH, inversion, 3, Style::Dotted, &[low, ("uplink.noise", "same-bandwidth")]),
        case(NOT_TRUNCATED, inversion, 4, Style::Dashed, &[low, ("uplink.truncate", "none")]),
        case(WIDE[0], floras, 6, Style::Solid, &[low, wide]),
        case(WIDE[1], floras, 6, Style::Dashed, &[high, wide]),
    ])
}
