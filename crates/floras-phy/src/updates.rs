//! The clients' updates, checked before they go on the air.

use crate::error::UplinkError;

/// The common number of parameters `d` of one update for each of `clients` clients.
pub(crate) fn check_shape<U: AsRef<[f32]>>(updates: &[U], clients: usize) -> Result<usize, UplinkError> {
    if updates.len() != clients {
        return Err(UplinkError::UpdateCount {
            updates: updates.len(),
            clients,
        });
    }
    let lengths = || updates.iter().map(|update| update.as_ref().len());
    let expected = lengths()
        .next()
        .filter(|&length| length > 0)
        .ok_or(UplinkError::EmptyUpdate)?;
    match lengths().enumerate().find(|&(_, length)| length != expected) {
        Some((index, found)) => Err(UplinkError::LengthMismatch {
            index,
            expected,
            found,
        }),
        None => Ok(expected),
    }
}

/// Names the first value that is not finite.
pub(crate) fn check_finite<U: AsRef<[f32]>>(updates: &[U]) -> Result<(), UplinkError> {
    for (index, update) in updates.iter().enumerate() {
        let values = update.as_ref();
        if let Some(parameter) = values.iter().position(|value| !value.is_finite()) {
            return Err(UplinkError::NotFinite {
                index,
                parameter,
                value: values[parameter],
            });
        }
    }
    Ok(())
}

/// Explains a decoded sum that is not finite.
///
/// NaN and infinities always reach the sum, even under a gain of zero. So the kernels look at the sum alone, and only
/// when it is not finite are the updates read a second time, to say which of them is wrong.
pub(crate) fn check_decoded<U: AsRef<[f32]>>(decoded: &[f32], updates: &[U]) -> Result<(), UplinkError> {
    match decoded.iter().position(|value| !value.is_finite()) {
        None => Ok(()),
        Some(parameter) => {
            check_finite(updates)?;
            Err(UplinkError::Overflow { parameter })
        }
    }
}
