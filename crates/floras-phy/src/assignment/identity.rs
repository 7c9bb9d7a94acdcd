//! A client's long-lived key pair, and the sealing of group keys with it.
//!
//! HPKE (RFC 9180) in Auth mode with DHKEM(X25519, HKDF-SHA256), HKDF-SHA256 and ChaCha20-Poly1305:
//!
//! ```text
//! info = "floras/sealed-key/v1" ‖ group ‖ epoch
//! aad = recipient's public key,   plaintext = group key
//! ```
//!
//! Auth mode mixes the dealer's private key into the seal. A base station that relays the bytes has
//! no such key, so it can neither read a group key nor put one of its own in its place.

use std::fmt;

use hpke::aead::{AeadTag, ChaCha20Poly1305};
use hpke::inout::InOutBuf;
use hpke::kdf::HkdfSha256;
use hpke::kem::X25519HkdfSha256;
use hpke::rand_core::CryptoRng;
use hpke::{
    Deserializable, HpkeError, Kem, OpModeR, OpModeS, Serializable, single_shot_open_inout_detached,
    single_shot_seal_inout_detached_with_rng,
};
use zeroize::{ZeroizeOnDrop, Zeroizing};

use super::entropy::{self, SeededRng};
use super::group::write_hex;
use super::{AssignmentError, Epoch, GroupId, GroupKey, SealedKey};

const INFO_LABEL: &[u8; 20] = b"floras/sealed-key/v1";

type HpkePrivate = <X25519HkdfSha256 as Kem>::PrivateKey;
type HpkePublic = <X25519HkdfSha256 as Kem>::PublicKey;
type HpkeEncapsulated = <X25519HkdfSha256 as Kem>::EncappedKey;

/// A client's X25519 public key, 32 bytes.
///
/// It must be enrolled over a channel that the base station does not control. `Display`
/// prints it in hexadecimal, so that two people can compare it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PublicKey([u8; 32]);

impl PublicKey {
    /// Takes the 32 bytes without a check. A key of low order, with which no secret can be agreed, is refused
    /// when it is used.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The X25519 public key as 32 bytes, to be sent to the other clients.
    pub fn to_bytes(self) -> [u8; 32] {
        self.0
    }

    fn to_hpke(self) -> Result<HpkePublic, HpkeError> {
        HpkePublic::from_bytes(&self.0)
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(f, &self.0)
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

/// A client's X25519 key pair. The private half is wiped when dropped and never printed.
pub struct ClientIdentity {
    private: HpkePrivate,
    public: PublicKey,
}

impl ClientIdentity {
    /// A fresh key pair from the operating system's randomness.
    pub fn generate() -> Result<Self, AssignmentError> {
        let mut seed = Zeroizing::new([0; 32]);
        entropy::fill(seed.as_mut_slice())?;
        let (private, _) = X25519HkdfSha256::derive_keypair(seed.as_slice());
        Ok(Self::from_private(private))
    }

    /// The key pair whose private half was stored with [`to_secret_bytes`](Self::to_secret_bytes).
    pub fn from_secret_bytes(secret: &[u8; 32]) -> Self {
        let private = HpkePrivate::from_bytes(secret).expect("any 32 bytes are an X25519 private key");
        Self::from_private(private)
    }

    /// The private half, for storage where only this client can read it. It opens every group key
    /// ever sealed to it.
    pub fn to_secret_bytes(&self) -> Zeroizing<[u8; 32]> {
        let mut secret = Zeroizing::new([0; 32]);
        self.private.write_exact(secret.as_mut_slice());
        secret
    }

    /// The public half, to be enrolled with the dealer and, if this client deals, with every other
    /// client.
    pub fn public_key(&self) -> PublicKey {
        self.public
    }

    /// Seals `key` for the client whose public key is `to`, in this client's name.
    pub fn deal(&self, key: &GroupKey, to: &PublicKey) -> Result<SealedKey, AssignmentError> {
        self.deal_with(key, to, &mut SeededRng::from_system()?)
    }

    /// Opens a key that `dealer` sealed for this client, if it is the one of that `group` and
    /// `epoch`.
    ///
    /// A client with a [`GroupMember`](super::GroupMember) passes the result to its `install`, which
    /// refuses an earlier epoch.
    pub fn open(
        &self,
        sealed: &SealedKey,
        dealer: &PublicKey,
        group: GroupId,
        epoch: Epoch,
    ) -> Result<GroupKey, AssignmentError> {
        let subject = "sealed key";
        if sealed.group != group {
            return Err(AssignmentError::WrongGroup { subject, got: sealed.group, expected: group });
        }
        if sealed.epoch != epoch {
            return Err(AssignmentError::WrongEpoch { subject, got: sealed.epoch, expected: epoch });
        }
        self.open_in_place(sealed, dealer).map_err(|_| AssignmentError::SealedKeyRejected)
    }

    /// The X25519 secret that this client shares with another (RFC 7748). A public key of low order is refused.
    pub(crate) fn shared_secret(&self, other: &PublicKey) -> Result<Zeroizing<[u8; 32]>, AssignmentError> {
        let private = x25519_dalek::StaticSecret::from(*self.to_secret_bytes());
        let shared = private.diffie_hellman(&other.0.into());
        if !shared.was_contributory() {
            return Err(AssignmentError::UnusableMemberKey { member: *other });
        }
        Ok(Zeroizing::new(*shared.as_bytes()))
    }

    fn from_private(private: HpkePrivate) -> Self {
        let public = PublicKey(X25519HkdfSha256::sk_to_pk(&private).to_bytes().into());
        Self { private, public }
    }

    pub(super) fn deal_with(
        &self,
        key: &GroupKey,
        to: &PublicKey,
        rng: &mut impl CryptoRng,
    ) -> Result<SealedKey, AssignmentError> {
        self.seal_in_place(key, to, rng).map_err(|_| AssignmentError::UnusablePublicKey)
    }

    fn seal_in_place(
        &self,
        key: &GroupKey,
        to: &PublicKey,
        rng: &mut impl CryptoRng,
    ) -> Result<SealedKey, HpkeError> {
        let mut buffer = Zeroizing::new(*key.secret());
        let (enc, tag) =
            single_shot_seal_inout_detached_with_rng::<ChaCha20Poly1305, HkdfSha256, X25519HkdfSha256>(
                &OpModeS::Auth((self.private.clone(), self.public.to_hpke()?)),
                &to.to_hpke()?,
                &info(key.group(), key.epoch()),
                InOutBuf::from(buffer.as_mut_slice()),
                &to.0,
                rng,
            )?;
        Ok(SealedKey {
            group: key.group(),
            epoch: key.epoch(),
            enc: enc.to_bytes().into(),
            ciphertext: *buffer,
            tag: tag.to_bytes().into(),
        })
    }

    fn open_in_place(&self, sealed: &SealedKey, dealer: &PublicKey) -> Result<GroupKey, HpkeError> {
        let mut key = GroupKey::from_secret_bytes(sealed.group, sealed.epoch, &sealed.ciphertext);
        single_shot_open_inout_detached::<ChaCha20Poly1305, HkdfSha256, X25519HkdfSha256>(
            &OpModeR::Auth(dealer.to_hpke()?),
            &self.private,
            &HpkeEncapsulated::from_bytes(&sealed.enc)?,
            &info(sealed.group, sealed.epoch),
            InOutBuf::from(key.secret_mut().as_mut_slice()),
            &self.public.0,
            &AeadTag::from_bytes(&sealed.tag)?,
        )?;
        Ok(key)
    }
}

/// The private field wipes itself.
impl ZeroizeOnDrop for ClientIdentity {}

impl fmt::Debug for ClientIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientIdentity")
            .field("public", &self.public)
            .field("private", &format_args!("[redacted]"))
            .finish()
    }
}

fn info(group: GroupId, epoch: Epoch) -> Vec<u8> {
    [&INFO_LABEL[..], &group.0, &epoch.0.to_be_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assignment::vectors::{hex, number, read};

    #[test]
    fn sealing_matches_an_independent_hpke_implementation() {
        for vector in read(include_str!("../../tests/vectors/sealed_key.json")) {
            let (group, epoch) = (GroupId(hex(&vector["group"])), Epoch(number(&vector["epoch"])));
            let key = GroupKey::from_secret_bytes(group, epoch, &hex(&vector["group_key"]));
            let dealer = ClientIdentity::from_secret_bytes(&hex(&vector["dealer_private"]));
            let client = PublicKey(hex(&vector["client_public"]));
            let mut rng = SeededRng::from_seed(&hex(&vector["ephemeral_seed"]));

            let sealed = dealer.deal_with(&key, &client, &mut rng).unwrap();

            assert_eq!(sealed.to_bytes(), hex(&vector["sealed_key"]));
        }
    }
}
