//! Masks from outside: exact cancellation, refusals, secrecy of the types, the same numbers for any number of threads.

#![expect(clippy::unwrap_used, reason = "a helper that fails should fail the test")]

use std::path::{Path, PathBuf};
use std::process::Command;

use floras_core::random::{Purpose, StreamName};
use floras_phy::UplinkError;
use floras_phy::assignment::{
    AssignmentError, Beacon, ClientIdentity, Epoch, GroupId, GroupKey, GroupMember, MaskedSlot, PublicKey,
};
use floras_phy::masks::{
    LocalNoise, MaskGrid, MaskSign, PairKeys, PairSeed, SlotMasks, add_local_noise, add_mask, mask_update,
};
use serde_json::Value;
use zeroize::ZeroizeOnDrop;

const GROUP: GroupId = GroupId(*b"floras test room");
const EPOCH: Epoch = Epoch(5);

/// A client with its identity, keys and state.
struct Client {
    public: PublicKey,
    pairs: PairKeys,
    member: GroupMember,
}

fn identity(number: u8) -> ClientIdentity {
    ClientIdentity::from_secret_bytes(&[number.wrapping_mul(37).wrapping_add(1); 32])
}

fn group_key(epoch: Epoch) -> GroupKey {
    GroupKey::from_secret_bytes(GROUP, epoch, &[0xa7; 32])
}

fn group(clients: u8) -> Vec<Client> {
    let members: Vec<PublicKey> = (0..clients).map(|number| identity(number).public_key()).collect();
    let client = |number| {
        let identity = identity(number);
        Client {
            public: identity.public_key(),
            pairs: PairKeys::agree(&identity, GROUP, &members).unwrap(),
            member: GroupMember::new(group_key(EPOCH)).with_minimum_cohort(1),
        }
    };
    (0..clients).map(client).collect()
}

fn beacon(slot: u64, per_round: u32) -> Beacon {
    Beacon { group: GROUP, epoch: EPOCH, slot, sequences: 32, per_round }
}

fn cohort(clients: &[Client]) -> Vec<PublicKey> {
    clients.iter().map(|client| client.public).collect()
}

fn noise(client: u32) -> LocalNoise {
    LocalNoise::simulated(StreamName::new(1, Purpose::LOCAL_NOISE).client(client))
}

fn update(client: u32, parameters: usize) -> Vec<f32> {
    let mut update = vec![0.0; parameters];
    StreamName::new(1, Purpose::BENCHMARK).client(client).normals().fill(0, &mut update);
    update
}

/// The transmitted values of every client of a group in a slot, in units of the update.
fn sent(clients: &mut [Client], grid: &MaskGrid, slot: u64, parameters: usize) -> Vec<Vec<f64>> {
    let cohort = cohort(clients);
    let per_round = cohort.len() as u32;
    let send = |(number, client): (u32, &mut Client)| {
        let masks = client
            .member
            .masked_slot(&beacon(slot, per_round), number + 1, &client.pairs, &cohort)
            .unwrap()
            .masks;
        let sent = mask_update(&update(number, parameters), masks, grid, noise(number)).unwrap();
        sent.into_iter().map(|sent| grid.sent_value(sent)).collect()
    };
    (0..).zip(clients).map(send).collect()
}

/// Without the rounding of what is sent, the sum would be exactly that of updates and noise.
#[test]
fn the_masks_of_a_cohort_sum_to_zero() {
    const PARAMETERS: usize = 500;
    for clients in 2..=20_u8 {
        let grid = MaskGrid::new(clients.into(), 1e4, 1.0).unwrap();
        let mut group = group(clients);
        let sent = sent(&mut group, &grid, 1, PARAMETERS);
        // The same without masks.
        let mut expected = vec![0.0; PARAMETERS];
        for number in 0..u32::from(clients) {
            let mut values = vec![0; PARAMETERS];
            grid.add_update(&update(number, PARAMETERS), &mut values).unwrap();
            add_local_noise(noise(number), &grid, &mut values).unwrap();
            for (expected, value) in expected.iter_mut().zip(values) {
                *expected += grid.sent_value(value);
            }
        }
        let spread = sent[0].iter().map(|value| value * value).sum::<f64>() / PARAMETERS as f64;
        assert!(spread > 1e7, "client 0 sends masks: {spread}");
        for parameter in 0..PARAMETERS {
            let sum: f64 = sent.iter().map(|row| row[parameter]).sum();
            let off = (sum - expected[parameter]).abs();
            assert!(off <= f64::from(clients) * grid.sent_step(), "{clients} clients: {off}");
        }
    }
}

#[test]
fn masks_on_the_fine_grid_cancel_exactly() {
    const PARAMETERS: usize = 3000;
    for clients in 2..=20_u32 {
        let grid = MaskGrid::new(clients, 7.7, 0.3).unwrap();
        let mut sums = vec![0_i64; PARAMETERS];
        let mut first = vec![0_i64; PARAMETERS];
        for k in 0..clients {
            let mut mask = vec![0; PARAMETERS];
            for j in (0..clients).filter(|&j| j != k) {
                let seed = PairSeed::from_bytes([(k.min(j) * 20 + k.max(j)) as u8; 32]);
                let sign = if k < j { MaskSign::Plus } else { MaskSign::Minus };
                add_mask(&seed, sign, &grid, &mut mask).unwrap();
            }
            if k == 0 {
                first.copy_from_slice(&mask);
            }
            sums.iter_mut().zip(&mask).for_each(|(sum, value)| *sum += value);
        }
        assert!(sums.iter().all(|&sum| sum == 0), "{clients} clients");
        assert!(first.iter().all(|&value| value != 0));
    }
}

/// The variance of what a client sends beside its update is `σ_m²(1 − 1/K) + σ_z²`, and clients correlate by `−σ_m²/K`. Five standard
/// errors of 200,000 values: a false alarm once in 600,000 seeds. A variance or covariance off by 3% is found with a probability above
/// 0.99.
#[test]
fn the_covariance_is_that_of_the_theorem() {
    const PARAMETERS: usize = 200_000;
    let (mask_std, noise_std) = (6.0, 2.0);
    let grid = MaskGrid::new(4, mask_std, noise_std).unwrap();
    let mut rows = sent(&mut group(4), &grid, 9, PARAMETERS);
    for (number, row) in (0..).zip(&mut rows) {
        row.iter_mut().zip(update(number, PARAMETERS)).for_each(|(value, x)| *value -= f64::from(x));
    }
    let count = PARAMETERS as f64;
    let variance = mask_std * mask_std * 0.75 + noise_std * noise_std;
    let moment =
        |left: &[f64], right: &[f64]| left.iter().zip(right).map(|(a, b)| a * b).sum::<f64>() / count;
    for k in 0..4 {
        for j in 0..4 {
            let (expected, error) = if k == j {
                (variance, variance * (2.0 / count).sqrt())
            } else {
                let covariance = -mask_std * mask_std / 4.0;
                (covariance, ((variance * variance + covariance * covariance) / count).sqrt())
            };
            let found = moment(&rows[k], &rows[j]);
            assert!((found - expected).abs() < 5.0 * error + 1e-3, "{k} {j}: {found}, not {expected}");
        }
    }
}

#[test]
fn a_replayed_slot_is_refused() {
    let mut group = group(4);
    let cohort = cohort(&group);
    let Client { pairs, member, .. } = &mut group[1];
    member.masked_slot(&beacon(7, 4), 2, pairs, &cohort).unwrap();
    let refused = |answer: Result<MaskedSlot, AssignmentError>| answer.unwrap_err();
    for slot in [7, 6, 0] {
        assert_eq!(
            refused(member.masked_slot(&beacon(slot, 4), 2, pairs, &cohort)),
            AssignmentError::SlotNotNew { slot, last: 7 }
        );
    }
    // Nor after a restart, and a slot in which a sequence was asked for has no masks.
    let mut member = GroupMember::resume(group_key(EPOCH), member.state()).unwrap();
    assert!(member.masked_slot(&beacon(7, 4), 2, pairs, &cohort).is_err());
    member.sequence_for(&beacon(8, 4), 2).unwrap();
    assert!(member.masked_slot(&beacon(8, 4), 2, pairs, &cohort).is_err());
    assert!(member.masked_slot(&beacon(9, 4), 2, pairs, &cohort).is_ok());
}

#[test]
fn a_slot_has_one_cohort() {
    let mut group = group(5);
    let all = cohort(&group);
    let Client { pairs, member, .. } = &mut group[0];
    member.masked_slot(&beacon(1, 4), 1, pairs, &all[..4]).unwrap();
    let other = [all[0], all[1], all[2], all[4]];
    assert_eq!(
        member.masked_slot(&beacon(1, 4), 1, pairs, &other).unwrap_err(),
        AssignmentError::SlotNotNew { slot: 1, last: 1 }
    );
}

#[test]
fn a_wrong_cohort_leaves_the_slot_unused() {
    let mut group = group(4);
    let all = cohort(&group);
    let stranger = identity(200).public_key();
    let Client { pairs, member, .. } = &mut group[0];
    let mut answer =
        |index, cohort: &[PublicKey]| member.masked_slot(&beacon(1, 4), index, pairs, cohort).unwrap_err();
    assert_eq!(answer(1, &all[..3]), AssignmentError::CohortSize { got: 3, per_round: 4 });
    assert_eq!(answer(2, &all), AssignmentError::NotAtIndex { index: 2 });
    assert_eq!(answer(0, &all), AssignmentError::IndexOutOfRange { index: 0, per_round: 4 });
    assert_eq!(answer(5, &all), AssignmentError::IndexOutOfRange { index: 5, per_round: 4 });
    assert_eq!(
        answer(1, &[all[0], all[1], all[2], all[1]]),
        AssignmentError::RepeatedMember { member: all[1] }
    );
    assert_eq!(
        answer(1, &[all[0], all[1], all[0], all[2]]),
        AssignmentError::RepeatedMember { member: all[0] }
    );
    assert_eq!(
        answer(1, &[all[0], all[1], all[2], stranger]),
        AssignmentError::UnknownMember { member: stranger }
    );
    assert!(member.masked_slot(&beacon(1, 4), 1, pairs, &all).is_ok());
}

#[test]
fn a_cohort_below_the_minimum_is_refused() {
    let group = group(4);
    let all = cohort(&group);
    let pairs = &group[0].pairs;
    let mut member = GroupMember::new(group_key(EPOCH));
    assert_eq!(
        member.masked_slot(&beacon(1, 2), 1, pairs, &all[..2]).unwrap_err(),
        AssignmentError::CohortTooSmall { others: 1, minimum: 2 }
    );
    let state = member.with_minimum_cohort(3).state();
    let mut member = GroupMember::resume(group_key(EPOCH), state).unwrap();
    assert!(member.masked_slot(&beacon(1, 3), 1, pairs, &all[..3]).is_err());
    assert!(member.masked_slot(&beacon(1, 4), 1, pairs, &all).is_ok());
}

#[test]
fn pair_keys_of_another_group_are_refused() {
    let group = group(3);
    let all = cohort(&group);
    let other = GroupId([0; 16]);
    let pairs = PairKeys::agree(&identity(0), other, &all).unwrap();
    let mut member = GroupMember::new(group_key(EPOCH));
    assert!(matches!(
        member.masked_slot(&beacon(1, 3), 1, &pairs, &all).unwrap_err(),
        AssignmentError::WrongGroup { expected: GROUP, .. }
    ));
}

#[test]
fn public_keys_of_low_order_are_refused() {
    // The points of order 1, 2, 4 and 8 (RFC 7748, section 6.1: the shared secret is zero).
    let mut eighth = [0; 32];
    for (byte, digits) in eighth
        .iter_mut()
        .zip("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800".as_bytes().chunks(2))
    {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).unwrap(), 16).unwrap();
    }
    let mut one = [0; 32];
    one[0] = 1;
    for bytes in [[0; 32], one, eighth] {
        let member = PublicKey::from_bytes(bytes);
        assert_eq!(
            PairKeys::agree(&identity(1), GROUP, &[member]).unwrap_err(),
            AssignmentError::UnusableMemberKey { member }
        );
    }
}

/// A base station may announce different cohorts to different clients. It must not learn a client's masks from this, on any scale. If both
/// clients of a pair used the same normal values, their sent values, each divided by its own `σ_p`, would add up to a sum without their
/// mask. Correlation within five standard errors: a false alarm once in two million seeds; the correlation would be −1/2 otherwise.
#[test]
fn different_cohorts_have_independent_masks() {
    const PARAMETERS: usize = 10_000;
    let mut group = group(4);
    let all = cohort(&group);
    let mut send = |number: usize, index: u32, cohort: &[PublicKey]| {
        let Client { pairs, member, .. } = &mut group[number];
        let clients = cohort.len() as u32;
        let grid = MaskGrid::new(clients, 1e3, 1.0).unwrap();
        let masks = member.masked_slot(&beacon(1, clients), index, pairs, cohort).unwrap().masks;
        let sent = mask_update(&[0.0; PARAMETERS], masks, &grid, noise(number as u32)).unwrap();
        sent.into_iter().map(|sent| grid.sent_value(sent) / grid.pair_std()).collect::<Vec<f64>>()
    };
    let (first, second) = (send(0, 1, &all[..3]), send(1, 2, &[all[0], all[1], all[3]]));
    let third = send(2, 3, &all[..3]);
    let correlation = |left: &[f64], right: &[f64]| {
        let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        product(left, right) / (product(left, left) * product(right, right)).sqrt()
    };
    let error = 1.0 / (PARAMETERS as f64).sqrt();
    assert!(correlation(&first, &second).abs() < 5.0 * error, "{}", correlation(&first, &second));
    assert!((correlation(&first, &third) + 0.5).abs() < 5.0 * error, "{}", correlation(&first, &third));
}

/// A seed depends on group, epoch, slot and both keys.
#[test]
fn seeds_depend_on_all_inputs() {
    let members: Vec<PublicKey> = (0..4).map(|number| identity(number).public_key()).collect();
    let grid = MaskGrid::new(2, 3.0, 1.0).unwrap();
    let mask = |group, epoch, slot, others: [u8; 2]| {
        let own = identity(others[0]);
        let pairs = PairKeys::agree(&own, group, &members).unwrap();
        let key = GroupKey::from_secret_bytes(group, epoch, &[1; 32]);
        let mut member = GroupMember::new(key).with_minimum_cohort(1);
        let beacon = Beacon { group, epoch, slot, sequences: 4, per_round: 2 };
        let cohort = [own.public_key(), identity(others[1]).public_key()];
        let masks = member.masked_slot(&beacon, 1, &pairs, &cohort).unwrap().masks;
        mask_update(&[0.0; 8], masks, &grid, noise(0)).unwrap()
    };
    let all = [
        mask(GROUP, EPOCH, 1, [0, 1]),
        mask(GROUP, EPOCH, 2, [0, 1]),
        mask(GROUP, Epoch(6), 1, [0, 1]),
        mask(GroupId([0; 16]), EPOCH, 1, [0, 1]),
        mask(GROUP, EPOCH, 1, [0, 2]),
        mask(GROUP, EPOCH, 1, [3, 1]),
    ];
    for (number, left) in all.iter().enumerate() {
        assert!(all[number + 1..].iter().all(|right| left != right));
    }
    assert_eq!(all[0], mask(GROUP, EPOCH, 1, [0, 1]));
}

#[test]
fn what_is_sent_does_not_depend_on_threads() {
    const PARAMETERS: usize = 50_000;
    let grid = MaskGrid::new(3, 3.0, 1.0).unwrap();
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| sent(&mut group(3), &grid, 4, PARAMETERS))
    };
    let expected = run(1);
    assert_eq!(run(2), expected);
    assert_eq!(run(5), expected);
    // A shorter update has the same masks and noise.
    let shorter = sent(&mut group(3), &grid, 4, 1000);
    assert_eq!(shorter[2], expected[2][..1000]);
}

#[test]
fn wrong_input_of_an_update_is_refused() {
    let grid = MaskGrid::new(3, 3.0, 1.0).unwrap();
    let masks = |others: u8| {
        let seeds = (0..others).map(|byte| (PairSeed::from_bytes([byte; 32]), MaskSign::Plus));
        SlotMasks::simulated(seeds.collect())
    };
    let error = mask_update(&[0.1], masks(3), &grid, noise(0)).unwrap_err();
    assert_eq!(error.to_string(), "expected 3 clients in the cohort, as the grid is for, but there are 4");
    assert_eq!(mask_update(&[], masks(2), &grid, noise(0)), Err(UplinkError::EmptyUpdate));
    let value = f32::INFINITY;
    assert_eq!(
        mask_update(&[0.1, value], masks(2), &grid, noise(0)),
        Err(UplinkError::NotFinite { index: 0, parameter: 1, value })
    );
}

#[test]
fn debug_output_holds_no_secret() {
    let seed = PairSeed::from_bytes([0xa7; 32]);
    let identity = ClientIdentity::from_secret_bytes(&[0xa7; 32]);
    let pairs = PairKeys::agree(&identity, GROUP, &[self::identity(1).public_key()]).unwrap();
    let masks = SlotMasks::simulated(vec![(PairSeed::from_bytes([0xa7; 32]), MaskSign::Plus)]);
    assert_eq!(format!("{seed:?}"), "PairSeed([redacted])");
    assert_eq!(format!("{masks:?}"), "SlotMasks { clients: 2, .. }");
    assert!(format!("{pairs:?}").contains("members: 1, keys: [redacted]"));
    assert!(format!("{:?}", noise(1)).contains("[redacted]"));
    for shown in [format!("{seed:#?}"), format!("{pairs:#?}"), format!("{masks:#?}")] {
        assert!(!shown.contains("a7a7") && !shown.contains("167"));
    }
}

#[test]
fn secrets_are_wiped_when_dropped() {
    fn wiped<T: ZeroizeOnDrop>(_: &T) {}
    wiped(&PairSeed::from_bytes([1; 32]));
    wiped(&PairKeys::agree(&identity(0), GROUP, &[identity(1).public_key()]).unwrap());
}

fn vectors_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors")
}

#[test]
fn the_python_script_makes_the_same_vectors() {
    let script = vectors_dir().join("masks.py");
    match Command::new("python3").arg("-B").arg(script).arg("--check").status() {
        Ok(status) => assert!(status.success()),
        Err(error) => eprintln!("skipped, as python3 does not start: {error}"),
    }
}

#[test]
fn the_format_document_quotes_the_first_vector() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/mask-format.md");
    let Ok(document) = std::fs::read_to_string(path) else {
        eprintln!("skipped, as the crate is built without the workspace's documents");
        return;
    };
    let text = std::fs::read_to_string(vectors_dir().join("masks.json")).unwrap();
    let vectors: Value = serde_json::from_str(&text).unwrap();
    let vector = &vectors["vectors"][0];
    for field in [
        "first_private",
        "first_public",
        "second_private",
        "second_public",
        "shared",
        "pair_key",
        "seed",
        "cohort_sha256",
    ] {
        assert!(document.contains(vector[field].as_str().unwrap()), "{field}");
    }
    for value in &vector["mask_start"].as_array().unwrap()[..2] {
        assert!(document.contains(&value.to_string()), "{value}");
    }
}
