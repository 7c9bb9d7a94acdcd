//! A paragraph for a paper: the bound of a view, its assumptions and the methods.

use floras_core::{LocalWork, Neighbours, Receiver, View};
use floras_privacy::{PrivacyUnit, Sampling, Setting, Statement};

use super::notes::epsilon_text;
use super::{AccountReport, ExperimentAccount, ExperimentReport};

/// Leakage that no view covers.
const NOT_COVERED: &str = "The bound covers neither the choice of hyperparameters on the clients' data, nor what clients reveal \
     outside the uplink";

impl AccountReport {
    /// One paragraph about a view, with its assumptions and citations.
    pub fn paragraph(&self, view: View) -> String {
        let Setting { delta, unit, .. } = self.setting;
        let mut sentences = vec![training(self)];
        match self.views.get(view) {
            None => sentences.push(format!("The {view} view needs the length of the sequences and the SNR.")),
            Some(statement) => {
                let neighbours = neighbours(unit, self.setting.neighbours);
                sentences.extend(about(view, statement, true, delta, &neighbours));
            }
        }
        let is_sampled = self.setting.sampling() != Sampling::Everyone;
        sentences.push(citations(view, true, is_sampled));
        sentences.join(" ")
    }
}

impl ExperimentAccount {
    /// One paragraph about a view of an experiment, with its assumptions and citations.
    pub fn paragraph(&self, report: &ExperimentReport, view: View) -> String {
        let (clients, total) = (report.per_round, report.clients);
        let clip = match report.clip {
            Some(clip) => format!("of norm at most C = {clip}"),
            None => "without a bound on their norm".to_owned(),
        };
        let scheme = self.settings().uplink.scheme.floras();
        let is_floras = scheme.is_some();
        let receiver =
            scheme.map_or_else(String::new, |scheme| format!(", with {}", receiver(scheme.receiver)));
        let cited = if is_floras { "floras [1]".to_owned() } else { report.scheme.to_owned() };
        let uplink = report.uplink.replacen(report.scheme, &cited, 1);
        let mut sentences = vec![format!(
            "The model is trained for {} in which {} send updates {clip}. The uplink is {uplink}{receiver}.",
            count(report.rounds),
            participants(clients, total)
        )];
        match report.views.get(view) {
            None => sentences.push(format!("The {view} view is not applicable to this scheme.")),
            Some(statement) => {
                let neighbours = neighbours(self.unit(), Neighbours::ReplaceOne);
                let has_raw_signal = report.views.get(View::RawSignal).is_some();
                sentences.extend(about(view, statement, has_raw_signal, report.delta, &neighbours));
            }
        }
        sentences.push(citations(view, is_floras, clients < total));
        sentences.join(" ")
    }
}

/// Sentences about the statement of a view. `has_raw_signal`: whether the scheme has a raw-signal view.
fn about(
    view: View,
    statement: &Statement,
    has_raw_signal: bool,
    delta: f64,
    neighbours: &str,
) -> Vec<String> {
    let Some(epsilon) = statement.epsilon else {
        if let Some(above) = statement.epsilon_above {
            return vec![format!(
                "Against {} (the {view} view), no ε up to {above:e} is established at δ = {delta:e}, which is no protection in \
                 practice.",
                statement.adversary
            )];
        }
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
            "Against {} (the {view} view), the training satisfies (ε, δ)-differential privacy with ε ≤ {epsilon} at δ = \
             {delta:e}, {neighbours}.",
            statement.adversary
        ));
    } else {
        let reason = statement.reason.as_deref().unwrap_or("it is not proven");
        sentences.push(format!(
            "The {view} view has ε = {epsilon} at δ = {delta:e}, {neighbours}, which is not a guarantee: {reason}."
        ));
    }
    sentences.extend(participation(view, statement));
    if !statement.assumptions.is_empty() {
        sentences.push(format!("The bound assumes that {}.", statement.assumptions.join("; ")));
    }
    let beyond = match has_raw_signal {
        _ if statement.has_raw_samples(view) => "",
        true => ", nor a base station that keeps its raw samples (the raw-signal view)",
        false => ", nor a base station that keeps what it receives",
    };
    sentences.push(format!("{NOT_COVERED}{beyond}."));
    sentences
}

fn receiver(receiver: Receiver) -> String {
    match receiver {
        Receiver::Paper => "the receiver of Wei et al. [1]".to_owned(),
        other => other.description(),
    }
}

fn participants(per_round: u64, clients: u64) -> String {
    if clients == 1 {
        return "one client".to_owned();
    }
    if per_round == clients {
        return format!("all {clients} clients");
    }
    format!("{per_round} of {clients} clients, drawn uniformly without replacement,")
}

fn count(rounds: u64) -> String {
    if rounds == 1 { "1 round".to_owned() } else { format!("{rounds} rounds") }
}

fn training(report: &AccountReport) -> String {
    let setting = &report.setting;
    let who = participants(setting.per_round, setting.clients);
    let receiver = match setting.branches {
        1 => receiver(setting.receiver),
        several => format!("{}, which combines {several} real branches", receiver(setting.receiver)),
    };
    let rounds = count(report.rounds);
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

fn neighbours(unit: PrivacyUnit, neighbours: Neighbours) -> String {
    let unit = match unit {
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
    match neighbours {
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

fn citations(view: View, is_floras: bool, is_sampled: bool) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut methods = format!("ε was computed with floras {version}");
    let mut references = Vec::new();
    if is_floras {
        references.push("Wei et al., IEEE Trans. Inf. Theory 72(5), 2026");
    }
    if view == View::Published {
        methods.push_str(" by the formulas of [1].");
    } else {
        let [koskela, gopi, dots, sampling] = [1, 2, 3, 4].map(|number| number + references.len());
        methods.push_str(&format!(
            ", which composes privacy loss distributions numerically [{koskela}, {gopi}] on a grid that connects the dots \
             [{dots}]"
        ));
        references.extend([
            "Koskela, Jälkö, Honkela, AISTATS 2020",
            "Gopi, Lee, Wutschitz, NeurIPS 2021",
            "Doroshenko et al., PoPETs 2022",
        ]);
        if is_sampled {
            methods.push_str(&format!(", with amplification by subsampling [{sampling}]"));
            references.push("Balle, Barthe, Gaboardi, NeurIPS 2018");
        }
        methods.push('.');
    }
    let numbered = references.iter().enumerate().map(|(number, text)| format!("[{}] {text}", number + 1));
    format!("{methods} {}.", numbered.collect::<Vec<_>>().join("; "))
}
