//! Presets: experiments with a name, which the program contains.

/// An experiment that the program contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// The name, as on the command line.
    pub name: &'static str,
    /// A description in one line.
    pub summary: &'static str,
    /// The text of its experiment file.
    pub text: &'static str,
}

/// All presets; the first is the default.
pub const PRESETS: [Preset; 10] = [
    Preset {
        name: "private",
        summary: "private against the base station itself: 1,000 clients, zero-sum masks, two antennas, ε ≤ 8 after 40 rounds",
        text: include_str!("../presets/private.toml"),
    },
    Preset {
        name: "digits-iid",
        summary: "the paper's IID task on the embedded digits: 20 clients, γ = 5 unused sequences, 20 dB",
        text: include_str!("../presets/digits-iid.toml"),
    },
    Preset {
        name: "digits-noniid",
        summary: "the paper's non-IID task: the same, but every client holds one digit only",
        text: include_str!("../presets/digits-noniid.toml"),
    },
    Preset {
        name: "fig4-floras",
        summary: "figure 4 of the paper, FLORAS at 0 dB, IID",
        text: include_str!("../presets/fig4-floras.toml"),
    },
    Preset {
        name: "fig4-inversion",
        summary: "figure 4 of the paper, channel inversion at 0 dB, IID",
        text: include_str!("../presets/fig4-inversion.toml"),
    },
    Preset {
        name: "fig5",
        summary: "figure 5 of the paper, γ = 5 at 20 dB, IID",
        text: include_str!("../presets/fig5.toml"),
    },
    Preset {
        name: "frontier",
        summary: "a point of the frontier: 200 clients with the clipped receiver, ε = 8 in the actual view after 40 rounds",
        text: include_str!("../presets/frontier.toml"),
    },
    Preset {
        name: "quick",
        summary: "a first look in a few seconds: 200 clients, clipped updates, a receiver that bounds its noise, γ = 20",
        text: include_str!("../presets/quick.toml"),
    },
    Preset {
        name: "many-clients",
        summary: "scale: 1,000 of 100,000 clients per round on a generated task",
        text: include_str!("../presets/many-clients.toml"),
    },
    Preset {
        name: "audit",
        summary: "what `floras audit` attacks by default: one round, clip norm 1, γ = 5 unused sequences, 20 dB",
        text: include_str!("../presets/audit.toml"),
    },
];

impl Preset {
    /// The preset of this name.
    pub fn find(name: &str) -> Option<&'static Self> {
        PRESETS.iter().find(|preset| preset.name == name)
    }
}

#[cfg(test)]
mod tests {
    use floras_core::View;

    use super::*;
    use crate::inquiry::ExperimentAccount;
    use crate::{Experiment, ExperimentBuilder, Settings};

    #[test]
    fn presets_are_valid_and_have_their_name() {
        for preset in PRESETS {
            let builder = ExperimentBuilder::preset(preset.name).unwrap();
            let experiment = builder.build().unwrap();
            assert_eq!(experiment.settings().name, preset.name);
            assert_eq!(builder.unused_keys(&experiment), Vec::<String>::new());
        }
    }

    /// It is the default: every rigorous view has the `ε` that its file states.
    #[test]
    fn the_private_preset_is_private_in_every_view() {
        let experiment = ExperimentBuilder::preset("private").unwrap().build().unwrap();
        let report = ExperimentAccount::new(&experiment).unwrap().report().unwrap();
        for view in View::RIGOROUS {
            let statement = report.views.get(view).unwrap();
            let epsilon = statement.epsilon.unwrap();
            assert!(statement.guarantee && epsilon <= 8.0 && epsilon > 7.9, "{view}: {epsilon}");
        }
    }

    /// Sizes, data and model are those of the paper's IID task.
    #[test]
    fn defaults_differ_from_the_paper_to_learn() {
        let preset = Experiment::parse("digits-iid", Preset::find("digits-iid").unwrap().text).unwrap();
        let preset = preset.settings().clone();
        assert_eq!(
            Settings { name: String::new(), ..Experiment::parse("empty", "").unwrap().settings().clone() },
            Settings { name: String::new(), ..Settings::default() }
        );
        let text = Experiment::new(Settings::default()).unwrap().to_toml();
        for line in [
            "receiver = \"clipped=2\"",
            "clip = 1.0",
            "normalise = \"clip\"",
            "rate = 1.0",
            "truncate = \"none\"",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
        let mut settings = Settings { name: preset.name.clone(), local: preset.local, ..Settings::default() };
        settings.privacy = preset.privacy;
        settings.uplink = preset.uplink.clone();
        assert_eq!(preset, settings);
    }

    /// A change of a default must not change a preset.
    #[test]
    fn presets_state_what_defaults_may_change() {
        for preset in PRESETS {
            let builder = ExperimentBuilder::preset(preset.name).unwrap();
            for key in ["seed", "trials", "rounds", "local.rate", "privacy.clip", "clients.total"] {
                assert!(builder.get(key).is_some(), "{key} of {}", preset.name);
            }
            let needs_receiver = builder.get("uplink.scheme").is_none_or(|scheme| scheme == "floras");
            assert!(!needs_receiver || builder.get("uplink.receiver").is_some(), "{}", preset.name);
        }
    }
}
