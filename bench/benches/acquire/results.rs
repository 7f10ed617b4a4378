//! What was measured, and how contestants take turns.

use serde_json::{Value, json};
use zae_limiter_bench::Disturbance;

use crate::measure::{Figures, ROUNDS};

/// One line of the table.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) endpoint: &'static str,
    pub(crate) case: String,
    pub(crate) who: &'static str,
    pub(crate) figures: Figures,
}

/// Everything that was measured.
#[derive(Debug, Default)]
pub(crate) struct Results {
    pub(crate) rows: Vec<Row>,
    /// Figures that are no operation: bytes per entity, calls of a second pass.
    pub(crate) single: Vec<(&'static str, f64)>,
    pub(crate) disturbance: Disturbance,
}

/// A contestant and one round of it.
pub(crate) type Contestant<'a> = (&'static str, Box<dyn FnMut() -> Figures + 'a>);

impl Results {
    /// Runs the contestants in turn, so that whatever else this machine does slows all of them.
    pub(crate) fn side_by_side(
        &mut self,
        endpoint: &'static str,
        case: &str,
        mut contestants: Vec<Contestant<'_>>,
    ) {
        for (_, run) in &mut contestants {
            run();
        }
        let mut rounds: Vec<Vec<Figures>> = vec![Vec::new(); contestants.len()];
        for _ in 0..ROUNDS {
            for ((_, run), own) in contestants.iter_mut().zip(&mut rounds) {
                own.push(self.disturbance.undisturbed(run));
            }
        }
        for ((who, _), rounds) in contestants.iter().zip(rounds) {
            self.add(endpoint, case, who, Figures::of(&rounds));
        }
    }

    pub(crate) fn add(&mut self, endpoint: &'static str, case: &str, who: &'static str, figures: Figures) {
        eprintln!("  {endpoint:<13} {case:<32} {who:<16} {:>12.0}/s", figures.rate);
        self.rows.push(Row {
            endpoint,
            case: case.to_owned(),
            who,
            figures,
        });
    }

    pub(crate) fn find(&self, endpoint: &str, case: &str, who: &str) -> Option<&Figures> {
        let same = |row: &&Row| row.endpoint == endpoint && row.case == case && row.who == who;
        self.rows.iter().find(same).map(|row| &row.figures)
    }

    pub(crate) fn find_mut(&mut self, endpoint: &str, case: &str, who: &str) -> Option<&mut Figures> {
        let same = |row: &&mut Row| row.endpoint == endpoint && row.case == case && row.who == who;
        self.rows.iter_mut().find(same).map(|row| &mut row.figures)
    }

    pub(crate) fn single(&self, name: &str) -> Option<f64> {
        let found = self.single.iter().find(|(own, _)| *own == name);
        found.map(|(_, value)| *value)
    }

    pub(crate) fn to_json(&self) -> Value {
        let rows = self.rows.iter().map(|row| {
            let key = json!({"endpoint": row.endpoint, "case": row.case, "who": row.who});
            merged(key, row.figures.to_json())
        });
        let single: serde_json::Map<String, Value> = self
            .single
            .iter()
            .map(|(name, value)| ((*name).to_owned(), json!(crate::measure::round(*value))))
            .collect();
        json!({"rows": rows.collect::<Vec<_>>(), "single": single})
    }
}

fn merged(mut key: Value, figures: Value) -> Value {
    if let (Some(all), Value::Object(more)) = (key.as_object_mut(), figures) {
        all.extend(more);
    }
    key
}
