//! `cargo xtask book-figures`: the book's computed pictures, drawn again with the libraries.
//!
//! Those of the chapter on the clipped projector are the receivers' weights, the leakage of a client over every channel, and
//! the noise of the unused sequences. Those of the chapter on the audit are reconstructed pictures, and how well the
//! sequences in use are found.

mod audit;

use std::fs;

use anyhow::{Context, Result};
use floras_core::{Fading, Modulation, Receiver, Snr, SnrConvention};
use floras_phy::{Floras, FlorasSettings, Round, SequenceSet, Uplink};
use floras_privacy::{AnyChannel, Composition, Sampling};
use floras_report::plot::Plot;
use floras_sim::figure::{Axis, Curve, Panel, Style};

use crate::shell;

/// Of a clip norm of 1, with one client's data replaced.
const SENSITIVITY: f64 = 2.0;
const DELTA: f64 = 1e-5;
/// Unused sequences in the picture of the worst channel.
const UNUSED: u64 = 20;
/// Rounds from which the quantiles of the noise are taken: two hundred are above the 99th.
const ROUNDS: u32 = 20_000;

/// A picture of the book.
struct File {
    /// Without an ending.
    name: String,
    svg: String,
}

/// Computes every picture and writes it to `docs/figures`.
pub(crate) fn run() -> Result<()> {
    let panels = [weights()?, worst_channel()?, noise()?];
    let drawn =
        panels.iter().map(|panel| File { name: panel.name.clone(), svg: Plot::of_panel(panel).svg() });
    for File { name, svg } in drawn.chain(audit::all()?) {
        let path = shell::root().join("docs/figures").join(format!("{name}.svg"));
        fs::write(&path, svg).with_context(|| format!("cannot write {}", path.display()))?;
        println!("{}", path.display());
    }
    Ok(())
}

/// What the base station multiplies a sequence by, against its estimate. All in units of `s`.
fn weights() -> Result<Panel> {
    let estimates: Vec<f64> = (1..=300).map(|step| f64::from(step) * 0.02).collect();
    let highest = 2.5;
    let curve = |(number, (name, receiver, style)): (usize, (&str, Receiver, Style))| {
        let weight =
            |&estimate: &f64| Some(receiver.weight(estimate, 1.0)).filter(|&weight| weight <= highest);
        let y = estimates.iter().map(weight).collect();
        Curve { name: name.into(), colour: number, style, x: estimates.clone(), y, band: None }
    };
    let curves = [
        ("paper, 1/ĥ", Receiver::Paper, Style::Solid),
        ("MMSE", Receiver::Mmse, Style::Dotted),
        ("clipped, c = 1", Receiver::clipped(1.0)?, Style::Dashed),
        ("clipped, c = 2", Receiver::clipped(2.0)?, Style::Dashed),
    ];
    Ok(Panel {
        name: "receiver-weights".into(),
        title: "Weight of a sequence".into(),
        x: linear("channel estimate ĥ, in units of the pilot noise s", (0.0, 6.0)),
        y: linear("weight w(ĥ), in units of 1/s", (0.0, highest)),
        curves: curves.into_iter().enumerate().map(curve).collect(),
    })
}

/// `ε` of one round for a client with the fixed channel `h = t·s`, all other clients' noise left out.
fn worst_channel() -> Result<Panel> {
    let channels: Vec<f64> = (-50..=100).map(|step| 10_f64.powf(f64::from(step) * 0.02)).collect();
    let mut curves = Vec::new();
    for (number, (name, receiver, style)) in [
        ("paper", Receiver::Paper, Style::Solid),
        ("clipped, c = 1", Receiver::clipped(1.0)?, Style::Dashed),
        ("clipped, c = 2", Receiver::clipped(2.0)?, Style::Dotted),
    ]
    .into_iter()
    .enumerate()
    {
        let any = AnyChannel::new(receiver, UNUSED, SENSITIVITY)?;
        let epsilon = |&t: &f64| -> Result<Option<f64>> {
            let distribution = any.distribution_at(t);
            Ok(Some(Composition::new(&distribution, Sampling::Everyone, 1)?.epsilon(DELTA)?.upper))
        };
        let y = channels.iter().map(epsilon).collect::<Result<_>>()?;
        curves.push(Curve { name: name.into(), colour: number, style, x: channels.clone(), y, band: None });
    }
    Ok(Panel {
        name: "worst-channel".into(),
        title: format!("ε of one round for a client, γ = {UNUSED}, C = 1, δ = 10⁻⁵"),
        x: logarithmic("channel t = h/s, in units of the pilot noise"),
        y: linear("ε of one round", (0.0, 28.0)),
        curves,
    })
}

/// Median and 99th percentile of `ν`, drawn with the air interface: one strong client, all other sequences unused.
fn noise() -> Result<Panel> {
    let unused = [1_usize, 2, 5, 10, 20, 50, 100, 200, 500];
    let mut curves = Vec::new();
    for (number, (name, receiver)) in [
        ("paper", Receiver::Paper),
        ("clipped, c = 1", Receiver::clipped(1.0)?),
        ("clipped, c = 2", Receiver::clipped(2.0)?),
    ]
    .into_iter()
    .enumerate()
    {
        let levels =
            unused.iter().map(|&unused| sorted_noise(receiver, unused)).collect::<Result<Vec<_>>>()?;
        for (share, quantile, style) in
            [(0.5, "median", Style::Solid), (0.99, "99th percentile", Style::Dashed)]
        {
            let at = (share * f64::from(ROUNDS)) as usize;
            curves.push(Curve {
                name: format!("{name}, {quantile}"),
                colour: number,
                style,
                x: unused.iter().map(|&unused| unused as f64).collect(),
                y: levels.iter().map(|sorted| sorted.get(at).copied()).collect(),
                band: None,
            });
        }
    }
    Ok(Panel {
        name: "receiver-noise".into(),
        title: "Noise in each parameter of the sum".into(),
        x: logarithmic("unused sequences γ"),
        y: logarithmic("standard deviation ν"),
        curves,
    })
}

/// `ν` of many rounds in order. At 80 dB without fading the client's own sequence adds next to nothing.
fn sorted_noise(receiver: Receiver, unused: usize) -> Result<Vec<f64>> {
    let uplink = Floras::new(FlorasSettings {
        sequences: SequenceSet::orthonormal(unused + 1, unused + 1)?,
        modulation: Modulation::Real,
        receiver,
        channels: Fading::None.into(),
        snr: Snr::new(80.0, SnrConvention::Symbol)?,
        ..FlorasSettings::default()
    });
    let level =
        |number| -> Result<f64> { Ok(uplink.realise(&Round::new(1, 0, number + 1, &[0])?)?.noise_std()) };
    let mut levels = (0..ROUNDS).map(level).collect::<Result<Vec<_>>>()?;
    levels.sort_by(f64::total_cmp);
    Ok(levels)
}

fn linear(label: &str, range: (f64, f64)) -> Axis {
    Axis { label: label.into(), logarithmic: false, range: Some(range) }
}

fn logarithmic(label: &str) -> Axis {
    Axis { label: label.into(), logarithmic: true, range: None }
}
