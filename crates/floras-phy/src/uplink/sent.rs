//! What a client sends: its update, scaled while it is read.

use std::borrow::Cow;

use crate::precode::{self, Scale};

/// A client's update as it is sent: clipped, without a copy.
///
/// ```
/// use floras_phy::{Sent, precode::Scale};
///
/// let sent = Sent::new(&[4.0, -2.0], Scale { mean: 0.0, factor: 0.5 });
/// assert_eq!(sent.values().as_ref(), [2.0, -1.0]);
/// let mut sum = [1.0, 1.0];
/// sent.add_to(&mut sum);
/// assert_eq!(sum, [3.0, 0.0]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sent<'a> {
    update: &'a [f32],
    scale: Scale,
}

impl<'a> Sent<'a> {
    /// An update that is changed by `scale` before it is sent.
    pub fn new(update: &'a [f32], scale: Scale) -> Self {
        Self { update, scale }
    }

    /// The values; copied only if they are changed.
    pub fn values(&self) -> Cow<'a, [f32]> {
        let mut values = Cow::Borrowed(self.update);
        if self.scale != Scale::UNCHANGED {
            self.scale.apply(values.to_mut());
        }
        values
    }

    /// The values up to a positive factor, which is enough for their signs; copied only if their mean is removed.
    pub fn direction(&self) -> Cow<'a, [f32]> {
        if self.scale.mean == 0.0 && self.scale.factor > 0.0 {
            Cow::Borrowed(self.update)
        } else {
            self.values()
        }
    }

    /// The Euclidean norm of the values, up to their rounding to single precision.
    pub fn norm(&self) -> f64 {
        precode::centred_norm(self.update, self.scale.mean) * self.scale.factor.abs()
    }

    /// Adds the values to as many sums.
    pub fn add_to(&self, sums: &mut [f32]) {
        pulp::Arch::new().dispatch(Add { sent: self, sums });
    }

    pub(crate) fn update(&self) -> &'a [f32] {
        self.update
    }

    pub(crate) fn scale(&self) -> Scale {
        self.scale
    }
}

impl<'a> From<&'a [f32]> for Sent<'a> {
    fn from(update: &'a [f32]) -> Self {
        Self::new(update, Scale::UNCHANGED)
    }
}

struct Add<'s, 'u> {
    sent: &'s Sent<'u>,
    sums: &'s mut [f32],
}

impl pulp::WithSimd for Add<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        let Sent { update, scale } = *self.sent;
        if scale == Scale::UNCHANGED {
            for (sum, value) in self.sums.iter_mut().zip(update) {
                *sum += value;
            }
            return;
        }
        for (sum, value) in self.sums.iter_mut().zip(update) {
            *sum += ((f64::from(*value) - scale.mean) * scale.factor) as f32;
        }
    }
}
