//! Whatever happens to a chunk, and in whichever order: no token is lost, none is made.

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
enum Event {
    Call(i128),
    Pass(u64),
    Debit(i128),
    Arrives(bool),
    Adjust(i128),
    Short,
    Widen,
    Unused,
    Changes,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        20 => (1..100_i128).prop_map(Event::Call),
        8 => (0..80_u64).prop_map(Event::Pass),
        1 => (0..5_000_u64).prop_map(Event::Pass),
        5 => (0..2_000_i128).prop_map(Event::Debit),
        5 => any::<bool>().prop_map(Event::Arrives),
        3 => (-100..100_i128).prop_map(Event::Adjust),
        1 => Just(Event::Short),
        1 => Just(Event::Widen),
        3 => Just(Event::Unused),
        1 => Just(Event::Changes),
    ]
}

proptest! {
    /// Whatever happens: what was debited was spent, went back or is held, never more than one second of traffic at a
    /// time, and every call is counted once.
    #[test]
    fn nothing_is_lost_and_nothing_is_made(events in prop::collection::vec(event(), 1..400)) {
        let configs = [config(1_000_000), config(2_000_000)];
        let images = [image(&configs[0], 1), image(&configs[1], 1)];
        let mut current = 0;
        let mut chunks = Chunks::new();
        let mut now = Duration::ZERO;
        let mut under_way: Option<(Debit, usize)> = None;
        let (mut debited, mut spent, mut back) = (0, 0, 0);
        let (mut calls, mut counted) = (0_u32, 0_u32);
        let gone = |given: Option<GiveBack>, back: &mut i128, counted: &mut u32| {
            if let Some(given) = given {
                *back -= given.changes.iter().map(|(_, change)| change).sum::<i128>();
                *counted += given.calls;
            }
        };
        for event in events {
            match event {
                Event::Call(tokens) => {
                    let amounts: Amounts = smallvec![(rpm(), tokens * 1000)];
                    chunks.note(&amounts, now);
                    if chunks.spend(&amounts, &configs[current], Some(&images[current]), now).is_some() {
                        spent += tokens * 1000;
                        calls += 1;
                    }
                }
                Event::Pass(time) => now += millis(time),
                Event::Debit(level) => {
                    if under_way.is_none() && chunks.is_low(now) {
                        let debit = chunks.debit(|_| level * 1000, now);
                        if let Some(debit) = debit {
                            let most = debit.amounts.iter().map(|(_, amount)| *amount).max();
                            prop_assert!(most <= Some(level * 1000 / PART_OF_LEVEL));
                            under_way = Some((debit, current));
                        }
                    }
                }
                Event::Arrives(happened) => if let Some((debit, config)) = under_way.take() {
                    if happened {
                        debited += debit.amounts.iter().map(|(_, amount)| amount).sum::<i128>();
                        counted += debit.calls;
                        let (config, image) = (configs[config].clone(), images[config].clone());
                        gone(chunks.arrived(debit.amounts, config, image, now), &mut back, &mut counted);
                    } else {
                        chunks.failed(debit.calls, now);
                    }
                },
                Event::Adjust(change) => {
                    let incarnation = images[current].incarnation();
                    if chunks.absorb(&smallvec![(rpm(), change * 1000)], incarnation, now) {
                        spent += change * 1000;
                    }
                }
                Event::Short => gone(chunks.short(now), &mut back, &mut counted),
                Event::Widen => chunks.widen(),
                Event::Unused => gone(chunks.unused(Some(&images[current]), now), &mut back, &mut counted),
                Event::Changes => current = 1 - current,
            }
            prop_assert!(chunks.tokens() >= 0);
            prop_assert_eq!(debited, spent + back + chunks.tokens());
        }
        if let Some((debit, _)) = under_way {
            chunks.failed(debit.calls, now);
        }
        gone(chunks.give_back(), &mut back, &mut counted);
        prop_assert_eq!(debited, spent + back);
        prop_assert_eq!(counted, calls);
    }
}

/// Chunks are shared behind the bucket's lock; what can go wrong is the order of what happens to them.
#[test]
fn in_every_order_what_was_taken_is_spent_or_goes_back_once() {
    use shuttle::sync::atomic::{AtomicI64, Ordering};
    use shuttle::sync::{Arc as SharedArc, Mutex};

    let tokens =
        |amounts: &Amounts| -> i64 { amounts.iter().map(|(_, one)| i64::try_from(*one).unwrap()).sum() };
    let run = move || {
        let config = config(1_000_000);
        let (chunks, now, image) = in_hand(&config);
        let taken = SharedArc::new(AtomicI64::new(i64::try_from(chunks.tokens()).unwrap()));
        let (chunks, used) = (
            SharedArc::new(Mutex::new(chunks)),
            SharedArc::new(AtomicI64::new(0)),
        );
        let mut users = Vec::new();
        for user in 0..3 {
            let (chunks, used, config, image) = (chunks.clone(), used.clone(), config.clone(), image.clone());
            users.push(shuttle::thread::spawn(move || {
                for _ in 0..3 {
                    let spent = chunks.lock().unwrap().spend(&call(), &config, Some(&image), now);
                    if spent.is_none() {
                        continue;
                    }
                    used.fetch_add(tokens(&call()), Ordering::SeqCst);
                    // Less was used than asked. What cannot go into the chunk is written to the table.
                    let change: Amounts = smallvec![(tpm(), -1_000 * user)];
                    if chunks.lock().unwrap().absorb(&change, image.incarnation(), now) {
                        used.fetch_add(tokens(&change), Ordering::SeqCst);
                    }
                }
            }));
        }
        let (returned, more) = (
            SharedArc::new(AtomicI64::new(0)),
            SharedArc::new(AtomicI64::new(0)),
        );
        let tender = {
            let (chunks, returned, more, image) =
                (chunks.clone(), returned.clone(), more.clone(), image.clone());
            shuttle::thread::spawn(move || {
                for _ in 0..2 {
                    if let Some(back) = chunks.lock().unwrap().short(now) {
                        returned.fetch_sub(tokens(&back.changes), Ordering::SeqCst);
                    }
                    let debit = chunks.lock().unwrap().debit(|_| PLENTY, now + PAUSE);
                    let Some(debit) = debit else { continue };
                    shuttle::thread::yield_now();
                    more.fetch_add(tokens(&debit.amounts), Ordering::SeqCst);
                    let mut chunks = chunks.lock().unwrap();
                    let outdated = chunks.arrived(debit.amounts, config.clone(), image.clone(), now);
                    returned.fetch_sub(outdated.map_or(0, |back| tokens(&back.changes)), Ordering::SeqCst);
                }
            })
        };
        for user in users {
            user.join().unwrap();
        }
        tender.join().unwrap();
        let mut chunks = chunks.lock().unwrap();
        if let Some(back) = chunks.give_back() {
            returned.fetch_sub(tokens(&back.changes), Ordering::SeqCst);
        }
        assert_eq!(chunks.tokens(), 0);
        let all = |counter: &AtomicI64| counter.load(Ordering::SeqCst);
        assert_eq!(all(&taken) + all(&more), all(&used) + all(&returned));
    };
    shuttle::check_random_with_seed(run, 2_026, 2_000);
}
