//! The captions of an audit's plots.

use floras_sim::figure::{Curve, Panel};

/// Curves that are never further apart than this share of the axis look like one.
const APART: f64 = 0.015;

/// Names the curves that lie on one another.
pub(super) fn caption(panel: &Panel) -> String {
    let (low, high) = panel.y.range.unwrap_or((0.0, 1.0));
    let apart = APART * (high - low).abs();
    let mut groups: Vec<Vec<&Curve>> = Vec::new();
    for curve in &panel.curves {
        let like = |group: &&mut Vec<&Curve>| group.iter().all(|other| look_alike(curve, other, apart));
        match groups.iter_mut().find(like) {
            Some(group) => group.push(curve),
            None => groups.push(vec![curve]),
        }
    }
    let names = |group: &Vec<&Curve>| {
        let names: Vec<String> = group.iter().map(|curve| format!("“{}”", curve.name)).collect();
        names.join(", ")
    };
    let alike: Vec<String> = groups.iter().filter(|group| group.len() > 1).map(names).collect();
    match alike.len() {
        0 => "Point at it for values.".to_owned(),
        _ => format!("These lie on one another: {}. Point at it for values.", alike.join("; and ")),
    }
}

/// Whether two curves are nowhere further apart than an eye can tell.
fn look_alike(one: &Curve, other: &Curve, apart: f64) -> bool {
    let pairs = one.y.iter().zip(&other.y).filter_map(|(one, other)| Some((one.as_ref()?, other.as_ref()?)));
    let (mut all, mut any) = (one.x == other.x, false);
    for (one, other) in pairs {
        (all, any) = (all && (one - other).abs() <= apart, true);
    }
    all && any
}

#[cfg(test)]
mod tests {
    use floras_sim::figure::{Axis, Style};

    use super::*;

    fn curve(name: &str, y: [f64; 2]) -> Curve {
        let y = y.map(Some).to_vec();
        Curve { name: name.to_owned(), colour: 0, style: Style::Solid, x: vec![0.0, 1.0], y, band: None }
    }

    #[test]
    fn curves_that_cannot_be_told_apart_are_named() {
        let axis = || Axis { label: String::new(), logarithmic: false, range: Some((0.0, 1.0)) };
        let curves =
            vec![curve("pilot", [0.5, 0.9]), curve("energy", [0.5, 0.6]), curve("both", [0.51, 0.9])];
        let mut panel = Panel { name: String::new(), title: String::new(), x: axis(), y: axis(), curves };
        assert_eq!(caption(&panel), "These lie on one another: “pilot”, “both”. Point at it for values.");
        panel.curves.pop();
        assert_eq!(caption(&panel), "Point at it for values.");
    }
}
