//! Asking all levels of a call, so that all of them admit it or none is charged.

use super::grant::Grant;
use super::level::Level;
use super::status::{LimitStatus, RateLimitExceeded};
use super::ticket::Answer;
use crate::{Error, Result};

/// The grants of a call by level; a level of which nothing is asked has none.
pub(super) type Grants = Vec<Option<Grant>>;

/// What the levels said.
#[derive(Default)]
struct Round {
    grants: Grants,
    refusals: Vec<(usize, Vec<LimitStatus>)>,
}

/// Asks every level. When all images predict success they are asked at the same time; one that looks refused is
/// asked first, alone. After a mixed result what was granted goes back and the levels are asked once more from the
/// root down, one after the other, so that two calls that each hold what the other needs cannot both lose. What the
/// other gives back is not in any image yet, so that nobody is refused there without another look.
pub(super) async fn admit(levels: &[Level]) -> Result<Grants> {
    let doubtful = levels
        .iter()
        .position(|level| !level.amounts.is_empty() && !level.looks_good());
    let mut round = Round::new(levels.len());
    if let Some(doubtful) = doubtful {
        round.ask(levels, &[doubtful], false).await?;
        if !round.refusals.is_empty() {
            return Err(round.exceeded(levels));
        }
    }
    let others: Vec<usize> = (0..levels.len())
        .filter(|index| Some(*index) != doubtful)
        .collect();
    round.ask(levels, &others, false).await?;
    if round.refusals.is_empty() {
        return Ok(round.grants);
    }
    if round.grants.iter().all(Option::is_none) {
        return Err(round.exceeded(levels));
    }
    drop(round);
    top_down(levels).await
}

async fn top_down(levels: &[Level]) -> Result<Grants> {
    let mut round = Round::new(levels.len());
    for index in (0..levels.len()).rev() {
        round.ask(levels, &[index], true).await?;
        if !round.refusals.is_empty() {
            return Err(round.exceeded(levels));
        }
    }
    Ok(round.grants)
}

impl Round {
    fn new(levels: usize) -> Self {
        Self {
            grants: (0..levels).map(|_| None).collect(),
            refusals: Vec::new(),
        }
    }

    /// Asks these levels at the same time and waits for all of them. An error at one gives back what the others
    /// granted.
    async fn ask(&mut self, levels: &[Level], wanted: &[usize], anew: bool) -> Result<()> {
        let mut answers = Vec::with_capacity(wanted.len());
        for &index in wanted.iter().filter(|index| !levels[**index].amounts.is_empty()) {
            answers.push((index, levels[index].ask(anew)?));
        }
        let mut failure = None;
        for (index, answer) in answers {
            match answer.await {
                Ok(Answer::Granted(grant)) => self.grants[index] = Some(grant),
                Ok(Answer::Refused(statuses)) => self.refusals.push((index, statuses)),
                Ok(Answer::Failed(error)) => failure = Some(error),
                // The runtime that worked on the lane is gone.
                Err(_) => failure = Some(levels[index].lane.hub().unavailable("the runtime was shut down")),
            }
        }
        failure.map_or(Ok(()), Err)
    }

    /// The statuses of every level: of those that refused as they were then, of the others as last seen.
    fn exceeded(mut self, levels: &[Level]) -> Error {
        let mut statuses = Vec::new();
        for (index, level) in levels.iter().enumerate() {
            match self.refusals.iter_mut().find(|(refused, _)| *refused == index) {
                Some((_, own)) => statuses.append(own),
                None => statuses.extend(level.statuses(self.grants[index].is_some())),
            }
        }
        Error::RateLimitExceeded(Box::new(RateLimitExceeded::new(statuses)))
    }
}
