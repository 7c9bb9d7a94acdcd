//! A paragraph for a paper: the bound of a view, its assumptions and the methods.

use floras_core::{LocalWork, Neighbours, Receiver, View};
use floras_privacy::{PrivacyUnit, Sampling, Setting, Statement};

use super::AccountReport;
use super::notes::epsilon_text;

/// Leakage that no view covers.
const NOT_COVERED: &str = "The bound covers neither the choice of hyperparameters on the clients' data, nor what clients reveal \
     outside the uplink";

impl AccountReport {
    /// One paragraph about a view, with its assumptions and citations.
    pub fn paragraph(&self, view: View) -> String {
        let mut sentences = vec![training(self)];
        match self.views.get(view) {
            None => sentences.push(format!("The {view} view needs the length of the sequences and the SNR.")),
            Some(statement) => sentences.extend(self.about(view, statement)),
        }
        sentences.push(citations(view, &self.setting));
        sentences.join(" ")
    }

    fn about(&self, view: View, statement: &Statement) -> Vec<String> {
        let Setting { delta, .. } = self.setting;
        let Some(epsilon) = statement.epsilon else {
            let reason = statement.reason.as_deref().unwrap_or("the noise is too weak");
            return vec![format!(
                "There is no finite ε at δ = {delta:e} against {} (the {view} view): {reason}.",
                statement.adversary
            )];
        };
        let mut sentences = Vec::new();
        let epsilon = epsilon_text(epsilon);
        if statement.guarantee {
            sentences.push(format!(
                "Against {} (the {view} view), the training satisfies (ε, δ)-differential privacy with ε ≤ {epsilon} at \
                 δ = {delta:e}, {}.",
                statement.adversary,
                neighbours(&self.setting)
            ));
        } else {
            let reason = statement.reason.as_deref().unwrap_or("it is not proven");
            sentences.push(format!(
                "The {view} view has ε = {epsilon} at δ = {delta:e}, {}, which is not a guarantee: {reason}.",
                neighbours(&self.setting)
            ));
        }
        sentences.extend(participation(view, statement));
        if !statement.assumptions.is_empty() {
            sentences.push(format!("The bound assumes that {}.", statement.assumptions.join("; ")));
        }
        let beyond = match view {
            View::RawSignal => String::new(),
            _ if statement.from_masks => String::new(),
            _ => ", nor a base station that keeps its raw samples (the raw-signal view)".to_owned(),
        };
        sentences.push(format!("{NOT_COVERED}{beyond}."));
        sentences
    }
}

fn training(report: &AccountReport) -> String {
    let setting = &report.setting;
    let who = if setting.per_round == setting.clients {
        format!("all {} clients", setting.clients)
    } else {
        format!("{} of {} clients, drawn uniformly without replacement,", setting.per_round, setting.clients)
    };
    let receiver = match setting.receiver {
        Receiver::Paper => "the receiver of Wei et al. [1]".to_owned(),
        other => other.description(),
    };
    let receiver = match setting.branches {
        1 => receiver,
        several => format!("{receiver}, which combines {several} real branches"),
    };
    let rounds = if report.rounds == 1 { "1 round".to_owned() } else { format!("{} rounds", report.rounds) };
    let masks = setting.masks.map_or(String::new(), |masks| {
        let pairs = match masks.mask_std() {
            0.0 => String::new(),
            std => format!("pairwise masks of standard deviation σ_m = {std} and "),
        };
        format!(
            " Every client adds {pairs}noise of standard deviation σ_z = {} to its update.",
            masks.noise_std()
        )
    });
    format!(
        "The model is trained for {rounds} in which {who} send updates of norm at most C = {} over the air with FLORAS [1], \
         using N = {} orthonormal sequences, of which γ = N − K = {} are unused, and {receiver}.{masks}",
        setting.clip,
        setting.sequences,
        setting.gamma(),
    )
}

fn neighbours(setting: &Setting) -> String {
    let unit = match setting.unit {
        PrivacyUnit::Client => "client".to_owned(),
        PrivacyUnit::Item { samples, local, .. } => {
            let local = match local {
                LocalWork::ONE_STEP => "one mini-batch".to_owned(),
                LocalWork::Steps(steps) => format!("{steps} mini-batches"),
                LocalWork::Epochs => "whole epochs".to_owned(),
            };
            format!("item (of {samples} per client, {local} per round)")
        }
    };
    match setting.neighbours {
        Neighbours::ReplaceOne => format!("where neighbouring populations differ in the data of one {unit}"),
        Neighbours::AddRemove => {
            format!("where neighbouring populations differ in the presence of one {unit}")
        }
    }
}

/// The sentence about an adversary that knows the participants.
fn participation(view: View, statement: &Statement) -> Option<String> {
    let detail = |name: &str| statement.details.get(name).map(|&epsilon| epsilon_text(epsilon));
    let in_every_round = detail("in_every_round")?;
    let known = match detail("participation_known") {
        Some(known) if view != View::AnyChannel && !statement.from_masks => {
            format!("An adversary who sees who takes part has ε ≤ {known}; a")
        }
        _ => "This adversary sees who takes part; a".to_owned(),
    };
    Some(format!("{known} client that takes part in every round has ε ≤ {in_every_round}."))
}

fn citations(view: View, setting: &Setting) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut methods = format!("ε was computed with floras {version}");
    let mut references = vec!["[1] Wei et al., IEEE Trans. Inf. Theory 72(5), 2026".to_owned()];
    if view == View::Published {
        methods.push_str(" by the formulas of [1].");
    } else {
        methods.push_str(
            ", which composes privacy loss distributions numerically [2, 3] on a grid that connects the dots [4]",
        );
        references.extend([
            "[2] Koskela, Jälkö, Honkela, AISTATS 2020".to_owned(),
            "[3] Gopi, Lee, Wutschitz, NeurIPS 2021".to_owned(),
            "[4] Doroshenko et al., PoPETs 2022".to_owned(),
        ]);
        if setting.sampling() != Sampling::Everyone {
            methods.push_str(", with amplification by subsampling [5]");
            references.push("[5] Balle, Barthe, Gaboardi, NeurIPS 2018".to_owned());
        }
        methods.push('.');
    }
    format!("{methods} {}.", references.join("; "))
}
