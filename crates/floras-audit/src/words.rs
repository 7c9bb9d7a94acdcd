//! An audit's settings and notes, in words.

use floras_core::{Choice, Clipping, Rounding, View};
use floras_sim::{SELECTION, Settings};

use super::report::AuditVerdict;
use super::views::AuditedViews;

/// The settings that determine the leakage.
pub(super) fn settings(settings: &Settings) -> Vec<(String, String)> {
    let mut words = vec![("scheme".to_owned(), settings.uplink.scheme.name().to_owned())];
    let mut add = |key: &str, value: String| words.push((key.to_owned(), value));
    let clients = &settings.clients;
    add("clients per round, K of M", format!("{} of {}", clients.per_round, clients.total));
    for (key, value) in settings.uplink.scheme.details(clients.per_round) {
        add(key, value);
    }
    if let Some(radio) = settings.uplink.radio() {
        add("sequence length, L", radio.length.to_string());
        add("fading", radio.fading.label());
        add("SNR", format!("{} dB", radio.snr_db));
    }
    if let Some(masks) = settings.masks {
        add("masks, σ_m", masks.mask_std().to_string());
        add("noise per client, σ_z", masks.noise_std().to_string());
        add("colluding clients", masks.colluding().to_string());
    }
    let norm = settings.privacy.clip.map_or("none".to_owned(), |clip| clip.to_string());
    let mode = settings.privacy.normalise.label();
    add("norm of an update, C", format!("{norm} ({mode})"));
    if let Some(bound) = settings.uplink.truncate {
        add("truncation, B", bound.to_string());
    }
    words
}

/// Notes for the reader.
pub(super) fn notes(settings: &Settings, views: &AuditedViews, left_out: &[String]) -> Vec<String> {
    let mut notes = vec![
        "a lower bound below a claim does not prove the claim: a better adversary or more games may raise it"
            .to_owned(),
    ];
    if !left_out.is_empty() {
        notes.push(format!("omitted, because training diverges: {}", left_out.join("; ")));
    }
    if settings.clients.per_round < settings.clients.total {
        notes.push(format!(
            "{SELECTION}. Only the any-channel adversary of the table knows the participants; in games with natural canaries, with single samples \
             and with the group key the client is known to take part in every round"
        ));
    }
    if views.iter().any(|(_, row)| row.rigorous.is_some() && !row.is_guarantee) {
        notes.push(
            "a rigorous epsilon marked as no guarantee is an estimate, or holds only under a caveat of the run's privacy statement; \
             exceeding it refutes nothing"
                .to_owned(),
        );
    }
    if let Some(floras) = settings.uplink.scheme.floras()
        && floras.is_orthonormal(settings.uplink.radio.length).is_ok_and(|is_orthonormal| !is_orthonormal)
    {
        notes.push("overlapping sequences: raw samples are attacked by reconstruction only".to_owned());
    }
    if crate::branches(settings) > 1 && settings.masks.is_none() {
        notes.push(
            "the receiver combines several branches: attacks on the sequences in use, on each client's own update, and on raw samples with real \
             data are omitted, because they use one branch"
                .to_owned(),
        );
    }
    if settings.masks.is_some() {
        let mut left_out = vec!["each client's own update", "a revealed key"];
        if settings.uplink.scheme.floras().is_some() {
            left_out.extend(["the sequences in use", "the assumptions of the any-channel view"]);
        }
        notes.push(format!(
            "clients mask their updates: raw samples are attacked in the section on masks, where a game is one round. Omitted, because they \
             attack updates without masks: {}",
            left_out.join("; ")
        ));
    }
    if settings.privacy.normalise == Clipping::Paper {
        notes.push(
            "under the paper's normalisation the sensitivity is (K+1)·C; the games move one client by 2·C, and do not \
             exploit that this rescales all others"
                .to_owned(),
        );
    }
    if let (Some(actual), Some(idealised)) = (views.get(View::Actual), views.get(View::Idealised))
        && let Some(claim) = idealised.rigorous
        && AuditVerdict::on(claim, actual.lower_bound) == AuditVerdict::Violated
    {
        notes.push(format!(
            "over the experiment's own channel the decoder leaks more than {}, which holds over a strong channel only: \
             fading matters",
            Rounding::Down.fixed(claim, 3)
        ));
    }
    if views.get(View::Actual).is_some_and(|row| !row.published_claims_it && row.published.is_some()) {
        notes.push(
            "the paper claims its epsilon for its own receiver; this experiment uses another one".to_owned(),
        );
    } else if views.get(View::RawSignal).is_some_and(|row| row.published.is_some()) {
        notes.push(
            "the paper claims its epsilon for its own receiver; for a base station that stores its samples it states that some privacy \
             remains (Remark 5)"
                .to_owned(),
        );
    }
    notes
}
