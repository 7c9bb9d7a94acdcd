//! Secret assignment: which client sends on which spreading sequence, hidden from the base station.
//!
//! Every client holds the same secret group key. The base station's beacon names a slot, the number
//! of sequences `N` and the number of participants `K`, and gives each participant an index in
//! `1..=K`. All clients derive the same permutation `π` of the `N` sequences from the key and the
//! slot, and the client with index `i` sends on column `π(i)`:
//!
//! ```text
//! A = [a_1 … a_N],   Ã = A·P_π,   client i sends on Ã[:, i]
//! π = Shuffle(ChaCha20(HKDF-SHA256(key; group, epoch, slot, N)))
//! ```
//!
//! The base station knows the indices and not the key, so it does not know `π`. The key never
//! passes through it in the clear: one client, the dealer, seals it to the public key of each other
//! client, and the base station only relays.
//!
//! What this hides and what it does not is in `docs/concepts/threat-model.md`; the exact bytes, with test
//! vectors, are in `docs/reference/assignment-format.md`.
//!
//! # Citations
//!
//! - Wei, Wang, Huang, Shen, Yang, Poor, the FLORAS paper, subsection "Spreading Sequence Assignment
//!   Mechanism": the shared key and the column permutation.
//! - RFC 9180 (HPKE), Auth mode, for the sealed key; RFC 5869 (HKDF); RFC 8439 (ChaCha20).
//! - Durstenfeld, "Algorithm 235: Random permutation", 1964, for the shuffle.
//!
//! # Example
//!
//! ```
//! use floras_phy::assignment::{
//!     Beacon, ClientIdentity, Epoch, GroupId, GroupKey, GroupMember, SealedKey,
//! };
//!
//! let (group, epoch) = (GroupId(*b"ward 7 scanners!"), Epoch(1));
//! let dealer = ClientIdentity::generate()?;
//! let client = ClientIdentity::generate()?;
//!
//! // The dealer makes the key and seals it; these bytes are all that the base station sees.
//! let key = GroupKey::generate(group, epoch)?;
//! let relayed = dealer.deal(&key, &client.public_key())?.to_bytes();
//!
//! let sealed = SealedKey::from_bytes(&relayed)?;
//! let opened = client.open(&sealed, &dealer.public_key(), group, epoch)?;
//!
//! let beacon = Beacon { group, epoch, slot: 1, sequences: 25, per_round: 20 };
//! let first = GroupMember::new(key).sequence_for(&beacon, 1)?;
//! let second = GroupMember::new(opened).sequence_for(&beacon, 2)?;
//! assert_ne!(first, second);
//! # Ok::<(), floras_phy::assignment::AssignmentError>(())
//! ```

mod entropy;
mod error;
mod group;
mod identity;
mod key;
mod member;
mod permutation;
mod sealed;
mod simulated;
#[cfg(test)]
pub(crate) mod vectors;

pub use error::AssignmentError;
pub use group::{Epoch, GroupId};
pub use identity::{ClientIdentity, PublicKey};
pub use key::GroupKey;
pub use member::{Beacon, GroupMember, MaskedSlot, MemberState};
pub use permutation::{MAX_SEQUENCES, permutation};
pub use sealed::SealedKey;
pub(crate) use simulated::SimulatedGroups;
