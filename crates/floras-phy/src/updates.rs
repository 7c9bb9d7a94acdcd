//! Checks of the clients' updates.

use crate::error::UplinkError;
#[cfg(test)]
use floras_core::random::{Purpose, StreamName};

/// The common number of parameters `d` of one update for each of `clients` clients.
pub(crate) fn check_shape<U: AsRef<[f32]>>(updates: &[U], clients: usize) -> Result<usize, UplinkError> {
    if updates.len() != clients {
        return Err(UplinkError::UpdateCount { updates: updates.len(), clients });
    }
    let lengths = || updates.iter().map(|update| update.as_ref().len());
    let expected = lengths().next().filter(|&length| length > 0).ok_or(UplinkError::EmptyUpdate)?;
    match lengths().enumerate().find(|&(_, length)| length != expected) {
        Some((index, found)) => Err(UplinkError::LengthMismatch { index, expected, found }),
        None => Ok(expected),
    }
}

/// An error that names the first value that is not finite.
pub(crate) fn check_finite<U: AsRef<[f32]>>(updates: &[U]) -> Result<(), UplinkError> {
    for (index, update) in updates.iter().enumerate() {
        let values = update.as_ref();
        if let Some(parameter) = values.iter().position(|value| !value.is_finite()) {
            return Err(UplinkError::NotFinite { index, parameter, value: values[parameter] });
        }
    }
    Ok(())
}

/// Number of parameters of the first update; 0 without updates.
pub(crate) fn parameters<U: AsRef<[f32]>>(updates: &[U]) -> usize {
    updates.first().map_or(0, |update| update.as_ref().len())
}

/// Updates of normal numbers for tests.
#[cfg(test)]
pub(crate) fn random_updates(clients: u32, parameters: usize) -> Vec<Vec<f32>> {
    let stream = StreamName::new(77, Purpose::BENCHMARK);
    (0..clients)
        .map(|client| {
            let mut update = vec![0.0; parameters];
            stream.client(client).normals().fill(0, &mut update);
            update
        })
        .collect()
}
