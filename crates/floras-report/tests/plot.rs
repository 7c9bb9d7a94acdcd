//! Plots: labels, units, and values where they belong.

#![expect(clippy::unwrap_used, reason = "tests")]

use floras_report::plot::{Holdings, Plot};
use floras_sim::figure::{Axis, Curve, Panel, Style};

fn axis(label: &str, logarithmic: bool, range: Option<(f64, f64)>) -> Axis {
    Axis { label: label.to_owned(), logarithmic, range }
}

fn curve(name: &str, style: Style, points: &[(f64, Option<f64>)]) -> Curve {
    let (x, y) = points.iter().copied().unzip();
    Curve { name: name.to_owned(), colour: 0, style, x, y, band: None }
}

fn panel(x: Axis, y: Axis, curves: Vec<Curve>) -> Panel {
    Panel { name: "a-panel".to_owned(), title: "A title".to_owned(), x, y, curves }
}

fn svg(panel: &Panel) -> String {
    Plot::of_panel(panel).svg()
}

/// The points of the lines that are drawn in the first colour and are not the legend's sample, in pixels.
fn lines(svg: &str) -> Vec<Vec<(f64, f64)>> {
    let document = roxmltree::Document::parse(svg).unwrap();
    let of_first = |node: &roxmltree::Node<'_, '_>| node.attribute("stroke") == Some("#0072b2");
    let paths = document.descendants().filter(of_first).map(|node| {
        let path = node.attribute("d").unwrap();
        let numbers = path.split(['M', 'L', ' ', ',']).filter_map(|number| number.parse::<f64>().ok());
        numbers.collect::<Vec<f64>>().chunks(2).map(|pair| (pair[0], pair[1])).collect::<Vec<(f64, f64)>>()
    });
    let mut lines: Vec<Vec<(f64, f64)>> = paths.collect();
    lines.pop();
    lines
}

/// The position of a tick's label: its centre from the left, or its baseline from the top.
fn label(svg: &str, text: &str, coordinate: &str) -> f64 {
    let document = roxmltree::Document::parse(svg).unwrap();
    let node = document.descendants().find(|node| node.is_element() && node.text() == Some(text));
    node.unwrap_or_else(|| panic!("no {text}")).attribute(coordinate).unwrap().parse().unwrap()
}

/// The ends of both axes are given, so the curve's corners are at the labels of the ticks. A swapped, reversed or wrongly scaled
/// axis would move them. Labels are at a fixed distance below their line.
#[test]
fn values_lie_at_their_ticks() {
    let points = [(0.0, Some(0.0)), (100.0, Some(0.5)), (300.0, Some(1.0))];
    let x = axis("round", false, Some((0.0, 400.0)));
    let drawn =
        svg(&panel(x, axis("share", false, Some((0.0, 1.0))), vec![curve("a", Style::Solid, &points)]));
    let lines = lines(&drawn);
    let [line] = &lines[..] else { panic!("{lines:?}") };
    let shift = label(&drawn, "0.2", "y") - line[0].1 + (line[0].1 - line[2].1) * 0.2;
    for (point, (across, up)) in line.iter().zip([("0", None), ("100", None), ("300", Some("1"))]) {
        if across != "0" {
            assert!((point.0 - label(&drawn, across, "x")).abs() < 0.02, "{across}: {point:?}");
        }
        if let Some(up) = up {
            assert!((point.1 + shift - label(&drawn, up, "y")).abs() < 0.02, "{up}: {point:?}");
        }
    }
    assert!(line[0].1 > line[1].1 && line[1].1 > line[2].1, "upwards is more");
    assert!(((line[0].1 - line[1].1) - (line[1].1 - line[2].1)).abs() < 0.02, "0.5 lies in the middle");
    assert!(((line[1].0 - line[0].0) * 2.0 - (line[2].0 - line[1].0)).abs() < 0.02, "200 is twice 100");
}

#[test]
fn logarithmic_axes_have_equal_steps_for_factors() {
    let points = [(1.0, Some(0.01)), (20.0, Some(1.0)), (400.0, Some(100.0))];
    let drawn = svg(&panel(
        axis("rounds", true, None),
        axis("ε", true, Some((0.001, 1000.0))),
        vec![curve("a", Style::Solid, &points)],
    ));
    let lines = lines(&drawn);
    let [line] = &lines[..] else { panic!("{lines:?}") };
    assert!((line[1].0 * 2.0 - line[0].0 - line[2].0).abs() < 0.03, "{line:?}");
    assert!((line[1].1 * 2.0 - line[0].1 - line[2].1).abs() < 0.03, "{line:?}");
    assert!((line[1].0 - label(&drawn, "20", "x")).abs() < 0.02);
}

#[test]
fn gaps_stay_gaps_and_axes_cut_curves() {
    let points = [(0.0, Some(0.5)), (1.0, Some(0.5)), (2.0, None), (3.0, Some(0.5)), (4.0, Some(0.5))];
    let x = || axis("x", false, None);
    let gap = svg(&panel(x(), axis("y", false, Some((0.0, 1.0))), vec![curve("a", Style::Solid, &points)]));
    assert_eq!(lines(&gap).iter().map(Vec::len).collect::<Vec<_>>(), [2, 2]);
    let tall = [(100.0, Some(0.0)), (101.0, Some(2.0))];
    let cut = svg(&panel(x(), axis("y", false, Some((0.0, 1.0))), vec![curve("a", Style::Solid, &tall)]));
    let lines = lines(&cut);
    let [line] = &lines[..] else { panic!("{lines:?}") };
    assert!((line[1].0 - (label(&cut, "100", "x") + label(&cut, "101", "x")) / 2.0).abs() < 0.5, "{line:?}");
    // A logarithmic axis cannot show zero.
    let nothing =
        svg(&panel(x(), axis("y", true, None), vec![curve("a", Style::Solid, &[(0.0, Some(0.0))])]));
    assert!(self::lines(&nothing).is_empty());
}

#[test]
fn pictures_have_title_labels_font_and_legend() {
    let mut banded = curve("with <b> & \"$\" in it", Style::Dashed, &[(0.0, Some(0.1)), (1.0, Some(0.2))]);
    banded.band = Some(vec![Some((0.05, 0.15)), Some((0.1, 0.3))]);
    let drawn =
        svg(&panel(axis("round", false, None), axis("loss (nats)", false, None), vec![banded.clone()]));
    let document = roxmltree::Document::parse(&drawn).unwrap();
    let texts: Vec<&str> = document.descendants().filter_map(|node| node.text()).collect();
    for wanted in ["A title", "round", "loss (nats)", "with <b> & \"$\" in it"] {
        assert!(texts.contains(&wanted), "no {wanted} in {texts:?}");
    }
    assert!(drawn.contains("stroke-dasharray"), "a style differs in more than colour");
    assert!(document.descendants().any(|node| node.attribute("fill") == Some("#0072b2")), "the band");
    assert_eq!(document.root_element().attribute("font-family"), Some("DejaVu Sans, Verdana, sans-serif"));
    let picture = Plot::of_panel(&panel(axis("round", false, None), axis("loss", false, None), vec![banded]))
        .png()
        .unwrap();
    assert!(picture.starts_with(b"\x89PNG"));
    let side = |at: usize| u32::from_be_bytes(picture[at..at + 4].try_into().unwrap());
    assert!(side(16) >= 1200 && side(20) >= 800, "{} by {}", side(16), side(20));
}

#[test]
fn empty_and_odd_panels_still_draw() {
    let empty = panel(axis("x", true, None), axis("y", false, None), Vec::new());
    roxmltree::Document::parse(&svg(&empty)).unwrap();
    Plot::of_panel(&empty).files().unwrap();
    let odd =
        curve("odd", Style::Dotted, &[(f64::NAN, Some(1.0)), (1.0, Some(f64::INFINITY)), (2.0, Some(1e308))]);
    let odd = panel(axis("x", false, None), axis("y", false, None), vec![odd]);
    roxmltree::Document::parse(&svg(&odd)).unwrap();
    Plot::of_panel(&odd).files().unwrap();
}

#[test]
fn label_picture_has_boxes_totals_and_scale() {
    let counts = vec![vec![3, 0, 5], vec![0, 9, 1]];
    let plot = Plot::of_holdings(&Holdings { title: "Labels".to_owned(), clients: 2, counts });
    let drawn = plot.svg();
    let document = roxmltree::Document::parse(&drawn).unwrap();
    let boxes = document.descendants().filter(|node| node.attribute("fill") == Some("#0072b2"));
    // Six counts and five steps of the scale.
    assert_eq!(boxes.count(), 11);
    let texts: Vec<&str> = document.descendants().filter_map(|node| node.text()).collect();
    for text in ["client 0", "client 1", "9", "total", "8", "10", "7–9"] {
        assert!(texts.contains(&text), "no {text} in {texts:?}");
    }
    assert!(plot.png().unwrap().starts_with(b"\x89PNG"));
    assert!(plot.csv().ends_with("client 1,1,9,,\nclient 1,2,1,,\n"));
}

#[test]
fn overlapping_curves_share_a_legend_entry() {
    let rising = [(1.0, Some(0.1)), (2.0, Some(0.9))];
    let curves = vec![
        curve("idealised", Style::Solid, &rising),
        curve("actual", Style::Dashed, &rising),
        curve("other", Style::Solid, &[(1.0, Some(0.9)), (2.0, Some(0.1))]),
    ];
    let plot = Plot::of_panel(&panel(axis("x", false, None), axis("y", false, None), curves));
    let drawn = plot.svg();
    assert!(
        drawn.contains(">idealised, actual<") && drawn.contains(">(overlap)<") && drawn.contains(">other<"),
        "{drawn}"
    );
    // The file of numbers has all of them.
    assert!(plot.csv().contains("\nactual,2,0.9,,\n"));
}

#[test]
fn csv_has_intervals_and_quoted_names() {
    let mut banded = curve("a, \"b\"", Style::Solid, &[(1.0, Some(0.5)), (2.0, None)]);
    banded.band = Some(vec![Some((0.25, 0.75)), None]);
    let plot = Plot::of_panel(&panel(axis("x", false, None), axis("y", false, None), vec![banded]));
    assert_eq!(plot.csv(), "series,x,y,low,high\n\"a, \"\"b\"\"\",1,0.5,0.25,0.75\n\"a, \"\"b\"\"\",2,,,\n");
}

#[test]
fn pdf_embeds_the_characters_it_uses() {
    let panel = panel(
        axis("rounds", false, None),
        axis("ε", true, None),
        vec![curve("a", Style::Dashed, &[(1.0, Some(2.0))])],
    );
    let pdf = Plot::of_panel(&panel).pdf().unwrap();
    assert!(pdf.starts_with(b"%PDF-") && pdf.ends_with(b"%%EOF"));
    let has = |word: &[u8]| pdf.windows(word.len()).any(|window| window == word);
    assert!(has(b"FLORAS+DejaVuSans") && has(b"/FontFile2") && has(b"/MediaBox [0 0 510 "));
    assert!(pdf.len() < 40_000, "{} bytes", pdf.len());
    assert_eq!(pdf, Plot::of_panel(&panel).pdf().unwrap());
}
