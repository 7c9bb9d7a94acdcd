//! Figure 4: FLORAS against channel inversion at 0 and 15 dB.
//!
//! The paper does not say how channel inversion sets its power, and that decides the outcome. The figure is drawn with the
//! convention that comes nearest to the paper's numbers; beside it stand the two that treat channel inversion better.

use super::Workbench;
use super::claims::FIG4;
use super::learning::{Case, Measure, PARTITIONS, Runs};
use floras_sim::SimError;
use floras_sim::figure::{Figure, Style};

/// The experiment of the FLORAS curve at 0 dB, IID.
pub(super) fn floras_file() -> &'static str {
    super::preset("fig4-floras")
}

fn inversion_file() -> &'static str {
    super::preset("fig4-inversion")
}

/// The curves of the paper, and then those that it leaves out.
const PAPER: [&str; 4] = ["FLORAS 15 dB", "channel inversion 15 dB", "FLORAS 0 dB", "channel inversion 0 dB"];
const FLORAS: &str = "FLORAS 0 dB";
const WORST_ADMITTED: &str = "channel inversion 0 dB, worst admitted client at full power";
const SAME_BANDWIDTH: &str = "channel inversion 0 dB, same bandwidth";

/// The figure.
pub(crate) fn fig4(bench: &Workbench<'_>) -> Result<Figure, SimError> {
    let runs = Runs::make(bench, "fig4", cases())?;
    let mut panels = runs.panels("fig4", &PAPER);
    for partition in PARTITIONS {
        let shown = [FLORAS, PAPER[3], WORST_ADMITTED, SAME_BANDWIDTH];
        let mut panel = runs.panel("fig4-conventions", partition, Measure::Accuracy, &shown);
        panel.title = format!("{}, 0 dB: channel inversion under three conventions", partition.words);
        panels.push(panel);
    }
    Ok(Figure {
        name: "fig4".to_owned(),
        title: "Figure 4: FLORAS against channel inversion at 0 and 15 dB".to_owned(),
        text: text(&runs),
        conventions: super::conventions(&[floras_file(), inversion_file()])?,
        panels,
        claims: runs.judge(&FIG4),
        privacy: runs.privacy(),
        notes: vec![super::INTERVALS.to_owned(), super::CHOICE.to_owned()],
    })
}

fn text(runs: &Runs) -> Vec<String> {
    let against = |than: &str| {
        let of = |partition| runs.difference_words(partition, FLORAS, than);
        format!("{} (IID) and {} (non-IID)", of("iid"), of("one-label"))
    };
    vec![
        format!(
            "At 0 dB the final test accuracy of FLORAS minus that of channel inversion is {}, under the convention that comes \
             nearest to the paper: every client arrives as weak as one at the admission threshold does at full power, and each \
             parameter takes one channel use, while FLORAS spends L chips on it.",
            against(PAPER[3])
        ),
        format!(
            "That difference is a matter of convention. If the weakest admitted client sends at full power, which channel \
             inversion allows, it is {}; if channel inversion may repeat each parameter L times and so spends the same \
             bandwidth as FLORAS, it is {}.",
            against(WORST_ADMITTED),
            against(SAME_BANDWIDTH)
        ),
    ]
}

fn cases() -> Vec<Case> {
    let case = |curve, file, colour, style, settings: &[(&'static str, &'static str)]| Case {
        curve,
        file,
        settings: settings.to_vec(),
        colour,
        style,
    };
    let snr_db = |snr_db: &'static str| ("uplink.snr_db", snr_db);
    let worst_admitted = ("uplink.power_rule", "worst-admitted");
    let same_bandwidth = ("uplink.noise", "same-bandwidth");
    vec![
        case(PAPER[0], floras_file(), 0, Style::Solid, &[snr_db("15.0")]),
        case(PAPER[1], inversion_file(), 0, Style::Dashed, &[snr_db("15.0")]),
        case(PAPER[2], floras_file(), 1, Style::Solid, &[snr_db("0.0")]),
        case(PAPER[3], inversion_file(), 1, Style::Dashed, &[snr_db("0.0")]),
        case(WORST_ADMITTED, inversion_file(), 2, Style::Dashed, &[snr_db("0.0"), worst_admitted]),
        case(SAME_BANDWIDTH, inversion_file(), 3, Style::Dotted, &[snr_db("0.0"), same_bandwidth]),
    ]
}
