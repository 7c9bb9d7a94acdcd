//! Settings in which an external review found false guarantees, with its lower bounds on the true `ε`.

#![expect(clippy::unwrap_used, reason = "tests")]
use floras_core::View;
use floras_privacy::Statement;
use floras_sim::inquiry::Keywords;

fn statement(setting: &str, view: View) -> Statement {
    let table: toml::Table = setting.parse().unwrap();
    let keywords = Keywords::read(table).unwrap();
    let report = keywords.inquiry().unwrap().account(keywords.sequences().unwrap(), None).unwrap();
    report.views.get(view).unwrap().clone()
}

/// The stated `ε` is a guarantee. It is not below the true `ε` up to its last digit, and above it at most by this share.
#[track_caller]
fn is_between(setting: &str, view: View, least: f64, looseness: f64) {
    let statement = statement(setting, view);
    let stated = statement.epsilon.unwrap();
    assert!(statement.guarantee, "{setting}");
    assert!(stated > least * (1.0 - 1e-4), "{view} of {setting}: {stated}, truth at least {least}");
    assert!(stated < least * (1.0 + looseness), "{view} of {setting}: {stated}, truth {least}");
}

/// A large `γ`, for which `ε` was stated as 0: it is close to that of a strong client, and not below.
#[test]
fn unused_sequences_never_hide_the_worst_channel() {
    for (setting, least) in [
        ("clip = 8\nsequences = 39321\nreceiver = { clipped = 30 }", 12.684),
        ("clip = 1\nsequences = 1000020\nreceiver = { clipped = 50 }", 0.341),
        ("clip = 1\nsequences = 200020\nreceiver = { clipped = 300 }", 6.17),
        ("clip = 63.3\nsequences = 139066\nreceiver = { clipped = 4 }", 6.26),
        ("clip = 12\nsequences = 45557\nreceiver = { clipped = 20 }", 11.57),
    ] {
        is_between(&format!("{setting}\nper_round = 20"), View::AnyChannel, least, 0.5);
    }
}

/// An adversary that knows the channels sees which clients take part: the attack's `ε` with the victim at one fixed channel.
#[test]
fn sampling_does_not_amplify_any_channel() {
    for (setting, least) in [
        ("sequences = 40\nper_round = 20\nclients = 200\nreceiver = { clipped = 1 }", 4.3395),
        ("sequences = 40\nper_round = 20\nclients = 200\nreceiver = { clipped = 1 }\nrounds = 10", 6.4572),
        ("sequences = 40\nper_round = 20\nclients = 200\nreceiver = { clipped = 1 }\nrounds = 100", 12.3017),
        (
            "sequences = 1248\nper_round = 1000\nclients = 100000\nreceiver = { clipped = 2 }\nrounds = 100",
            1.9807,
        ),
        ("sequences = 40\nper_round = 20\nclients = 2000\nreceiver = { clipped = 2 }", 4.0776),
        ("sequences = 128\nper_round = 20\nclients = 200\nreceiver = { clipped = 2 }\nrounds = 100", 7.5116),
    ] {
        is_between(&format!("clip = 1\n{setting}"), View::AnyChannel, least, 0.25);
    }
    let few =
        "clip = 0.5\nsequences = 6\nper_round = 5\nclients = 50\nreceiver = { clipped = 1 }\ndelta = 1e-3";
    // The review's adversary saw only the decoded vector.
    is_between(few, View::AnyChannel, 3.5789, 1.0);
}

/// Raw samples show the whole amplitude, in both branches.
#[test]
fn raw_samples_have_both_branches() {
    let loud = "clip = 1\nsequences = 21\nper_round = 1\nlength = 32\nsnr_db = 20";
    is_between(loud, View::RawSignal, 73_692.0, 0.001);
    for (rounds, truth) in [(1, 1.034), (100, 7.853), (1000, 33.87)] {
        let quiet = format!(
            "clip = 0.1\nsequences = 21\nper_round = 1\nlength = 64\nsnr_db = -20\nrounds = {rounds}"
        );
        is_between(&quiet, View::RawSignal, truth - 5e-4, 0.01);
    }
}

/// Channels whose density grows without bound towards 0.
#[test]
fn deep_fades_of_nakagami_channels_count() {
    for (m, snr, length, delta, truth) in [
        (0.5, 50, 1024, 1e-6, 6.558),
        (0.5, 30, 1024, 1e-5, 5.702),
        (0.5, 70, 1024, 1e-6, 1.476),
        (0.55, 30, 1024, 1e-5, 5.086),
        (0.7, 30, 1024, 1e-5, 3.784),
    ] {
        let setting = format!(
            "clip = 1\nsequences = 21\nper_round = 1\nlength = {length}\nsnr_db = {snr}\ndelta = {delta:e}\n\
             fading = {{ nakagami = {m} }}\nmodulation = \"real\""
        );
        is_between(&setting, View::Actual, truth - 5e-4, 0.02);
    }
    for (receiver, truth) in [("\"paper\"", 1.456), ("{ clipped = 1 }", 2.051)] {
        let setting = format!(
            "clip = 1\nsequences = 40\nper_round = 20\nlength = 64\nsnr_db = 60\n\
             fading = {{ nakagami = 0.5 }}\nmodulation = \"real\"\nreceiver = {receiver}"
        );
        is_between(&setting, View::Actual, truth - 5e-4, 0.05);
    }
}

#[test]
fn a_delta_below_the_smallest_is_refused() {
    let setting: toml::Table = "clip = 1\nsequences = 25\nper_round = 20\ndelta = 1e-60".parse().unwrap();
    let text = Keywords::read(setting).unwrap().inquiry().unwrap().account(25, None).unwrap_err().to_string();
    assert!(text.contains("delta") && text.contains("1e-30"), "{text}");
}

/// Four unused sequences beside 3446 used ones of weak fading: the lower bound was 3651.7. The evaluator bounds the true `ε` from above.
#[test]
fn a_lower_bound_counts_rare_loud_noise() {
    let setting = "clip = 0.5236\nsequences = 3451\nper_round = 3447\nrounds = 100\ndelta = 1.2e-11\n\
                   receiver = \"mmse\"\nlength = 1048576\nsnr_db = 35.5\nfading = \"nakagami=1.62\"\n\
                   modulation = \"real\"";
    let statement = statement(setting, View::Actual);
    let (lower, upper) = (statement.epsilon_lower.unwrap(), statement.epsilon.unwrap());
    assert!(lower <= 1977.68 && 1977.68 * 0.9 < upper, "{lower} to {upper}");
}
