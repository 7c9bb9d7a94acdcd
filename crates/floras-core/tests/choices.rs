//! Every choice is written and read in one text form, in JSON as a string or as a table with one entry.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::fmt::Debug;

use floras_core::{
    Admission, Ageing, Assignment, ChannelSource, Choice, Clipping, Fading, Family, Fidelity, Level,
    LocalWork, Modulation, Neighbours, NoiseReference, PhaseError, PowerRule, Receiver, SequenceSource,
    SnrConvention, View,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

#[track_caller]
fn round_trips<T: Choice + PartialEq + Debug + Serialize + DeserializeOwned>(texts: &[&str]) {
    for &text in texts {
        let value: T = text.parse().unwrap();
        assert_eq!(value.to_string(), text);
        assert_eq!(serde_json::to_value(&value).unwrap(), json!(text));
        assert_eq!(serde_json::from_value::<T>(json!(text)).unwrap(), value);
        assert!(!value.label().is_empty(), "{text}");
        if let Some((name, parameter)) = text.split_once('=') {
            let number = parameter.parse::<f64>().map_or_else(|_| json!(parameter), |number| json!(number));
            assert_eq!(serde_json::from_value::<T>(json!({ name: number })).unwrap(), value);
        }
    }
    let name = |text: &str| text.split('=').next().unwrap_or_default().to_owned();
    let listed: Vec<String> = T::FORMS.iter().map(|form| name(form)).collect();
    assert!(texts.iter().all(|text| listed.contains(&name(text))), "{listed:?}");
    for wrong in ["", "nothing", "=", "=1", "clipped", "rician=", "rician=x", "paper=1", "uniform=NaN"] {
        let error = wrong.parse::<T>().unwrap_err();
        assert_eq!(error.to_string(), format!("the {} must be {}, not {wrong}", T::WHAT, T::allowed()));
    }
    for wrong in [json!(1), json!(null), json!([]), json!({}), json!({"rician": 1, "nakagami": 1})] {
        assert!(serde_json::from_value::<T>(wrong.clone()).is_err(), "{wrong}");
    }
}

#[test]
fn choices_without_parameter_round_trip() {
    round_trips::<SnrConvention>(&SnrConvention::ALL.map(SnrConvention::name));
    round_trips::<Family>(&Family::ALL.map(Family::name));
    round_trips::<Fidelity>(&Fidelity::ALL.map(Fidelity::name));
    round_trips::<View>(&View::ALL.map(View::name));
    round_trips::<Level>(&Level::ALL.map(Level::name));
    round_trips::<Neighbours>(&Neighbours::ALL.map(Neighbours::name));
    round_trips::<Clipping>(&Clipping::ALL.map(Clipping::name));
    round_trips::<Assignment>(&Assignment::ALL.map(Assignment::name));
    round_trips::<PowerRule>(&PowerRule::ALL.map(PowerRule::name));
    round_trips::<NoiseReference>(&NoiseReference::ALL.map(NoiseReference::name));
}

#[test]
fn choices_with_a_parameter_round_trip() {
    round_trips::<Receiver>(&["paper", "mmse", "clipped=1", "clipped=0.05", "clipped=1000000"]);
    round_trips::<PhaseError>(&["none", "uniform=0.1", "gaussian=1.5"]);
    round_trips::<Fading>(&["rayleigh", "none", "rician=3", "nakagami=0.5"]);
    round_trips::<ChannelSource>(&["rayleigh", "rician=0.25", "trace=data/measured.csv"]);
    round_trips::<SequenceSource>(&["walsh", "gold", "zadoff-chu", "file=data/codes.csv"]);
    round_trips::<Ageing>(&["none", "correlation=0.9", "correlation=-0.3", "doppler=0.05"]);
    round_trips::<Admission>(&["amplitude=0.01", "power=0.0001"]);
    round_trips::<Modulation>(&["real", "phase-corrected"]);
    round_trips::<LocalWork>(&["one-step", "steps=2", "steps=1000000", "epochs"]);
}

#[test]
fn a_modulation_keeps_its_phase_error() {
    for text in ["phase-corrected=uniform=0.1", "phase-corrected=gaussian=2"] {
        assert_eq!(text.parse::<Modulation>().unwrap().to_string(), text);
    }
    assert!("phase-corrected=uniform=2".parse::<Modulation>().is_err());
}

#[test]
fn a_separate_phase_error_must_match_the_modulation() {
    let modulation = |text: &str| text.parse::<Modulation>().unwrap();
    let error = PhaseError::gaussian(0.3).unwrap();
    let joined = |text: &str| modulation(text).with_phase_error(Some(error));
    assert_eq!(joined("phase-corrected"), Ok(Modulation::PhaseCorrected(error)));
    assert_eq!(joined("phase-corrected=gaussian=0.3"), Ok(Modulation::PhaseCorrected(error)));
    assert!(joined("phase-corrected=uniform=0.1").is_err() && joined("real").is_err());
    assert_eq!(modulation("real").with_phase_error(Some(PhaseError::None)), Ok(Modulation::Real));
}

#[test]
fn errors_state_the_allowed_range() {
    let error = "nakagami=0.1".parse::<Fading>().unwrap_err();
    assert!(error.to_string().ends_with("m between 0.5 and 1e6), not nakagami=0.1"), "{error}");
    let error = serde_json::from_value::<Receiver>(json!({"clipped": 0})).unwrap_err();
    assert!(error.to_string().contains("c between 1e-6 and 1e6"), "{error}");
}
