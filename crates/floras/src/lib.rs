//! Private federated learning over the air: the facade of the `floras` crates.
//!
//! [`phy`] is the air interface: sequences, secret assignment, fading, noise and uplink schemes.

pub use floras_phy as phy;
