use floras_privacy::*;
use std::time::Instant;
fn main() {
    let v: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string("/work/shared/reference/privacy.json").unwrap())
            .unwrap();
    for r in v["unsubsampled"].as_array().unwrap() {
        let g = r["gamma"].as_f64().unwrap();
        let t = r["T"].as_u64().unwrap();
        let law = Law::HalfNormal { scale: 2.0 / g };
        let s = Instant::now();
        let c = Composition::new(&law, Sampling::Everyone, t).unwrap();
        let e = c.epsilon(1e-5).unwrap();
        println!(
            "{g} {t} {} {:?} {:.1e} {:?}",
            r["exact"],
            e,
            e.upper / r["exact"].as_f64().unwrap() - 1.0,
            s.elapsed()
        );
    }
    for r in v["subsampled"].as_array().unwrap() {
        let g = r["gamma"].as_f64().unwrap();
        let t = r["T"].as_u64().unwrap();
        let p = r["p"].as_f64().unwrap();
        let law = Law::HalfNormal { scale: 2.0 / g };
        for grid in [Grid::Auto, Grid::Step(1e-4)] {
            let s = Instant::now();
            let c = Composition::new(&law, Sampling::ReplaceOne(p), t).unwrap().on_grid(grid).unwrap();
            let e = c.epsilon(1e-5).unwrap();
            println!(
                "{g} {p} {t} {} {:?} {:.1e} {:?}",
                r["pld"],
                e,
                e.upper / r["pld"].as_f64().unwrap() - 1.0,
                s.elapsed()
            );
        }
    }
    // pld vs closed form
    for (t, d) in [(10u64, 1e-5), (1000, 1e-5), (1000, 1e-15), (1000000, 1e-9)] {
        for g in [5.0, 1e3, 1e6] {
            let law = Law::HalfNormal { scale: 2.0 / g };
            let exact = Composition::new(&law, Sampling::Everyone, t).unwrap().epsilon(d).unwrap().upper;
            let s = Instant::now();
            let e =
                Composition::new(&law, Sampling::ReplaceOne(0.999999999999), t).unwrap().epsilon(d).unwrap();
            println!("T={t} d={d} g={g} exact {exact} {e:?} {:.1e} {:?}", e.upper / exact - 1.0, s.elapsed());
            let de = Composition::new(&law, Sampling::ReplaceOne(0.999999999999), t)
                .unwrap()
                .delta(exact)
                .unwrap();
            println!("   delta {de:?}");
        }
    }
}
