//! Money: text, costs and estimates, exact for every amount.

use proptest::prelude::*;
use zae_limiter_schema::money::{Estimate, MicroDollars, Prices, Usage, dollars};
use zae_limiter_schema::{LimitName, Tokens};

use crate::common::config;

fn money(text: &str) -> MicroDollars {
    text.parse().unwrap()
}

fn amount() -> impl Strategy<Value = MicroDollars> {
    let edges = proptest::sample::select(vec![0, 1, 999_999, 1_000_000, MicroDollars::MAX]);
    prop_oneof![edges, 0..=MicroDollars::MAX].prop_map(|amount| MicroDollars::new(amount).unwrap())
}

pub(crate) fn prices() -> impl Strategy<Value = Prices> {
    let price = || proptest::option::of(amount());
    let tokens = || proptest::option::of(0..=Tokens::MAX);
    let token_limits = proptest::collection::btree_set("[a-s][a-z.-]{0,6}", 0..4);
    let money_limit = "t[a-z.-]{3,6}";
    (
        [price(), price(), price(), price(), price()],
        [tokens(), tokens()],
        money_limit,
        token_limits,
    )
        .prop_map(|(price, tokens, money_limit, token_limits)| Prices {
            input: price[0],
            output: price[1],
            cached_input: price[2],
            cache_write: price[3],
            per_call: price[4],
            default_output: tokens[0],
            max_output: tokens[1],
            money_limit: LimitName::parse(money_limit).unwrap(),
            token_limits: token_limits
                .into_iter()
                .map(|name| LimitName::from_stored(&name).unwrap())
                .collect(),
        })
}

fn usage() -> impl Strategy<Value = Usage> {
    let count = || prop_oneof![4 => 0..2_000_000_u64, 1 => any::<u64>()];
    (count(), count(), count(), count(), 0..1_000_u64).prop_map(
        |(input, output, cached_input, cache_write, calls)| Usage {
            input,
            output,
            cached_input,
            cache_write,
            calls,
        },
    )
}

/// The cost in millionths of a micro-dollar.
fn unrounded(prices: &Prices, usage: &Usage) -> u128 {
    let product = |count: u64, price: Option<MicroDollars>| {
        u128::from(count) * u128::from(price.map_or(0, MicroDollars::get))
    };
    product(usage.input, prices.input)
        + product(usage.output, prices.output)
        + product(usage.cached_input, prices.cached_input.or(prices.input))
        + product(usage.cache_write, prices.cache_write.or(prices.input))
        + product(usage.calls, prices.per_call) * 1_000_000
}

proptest! {
    #![proptest_config(config(2000))]

    #[test]
    fn a_cost_is_the_exact_sum_rounded_up(prices in prices(), usage in usage()) {
        let exact = unrounded(&prices, &usage);
        match prices.cost(&usage) {
            Ok(cost) => {
                let cost = u128::from(cost.get()) * 1_000_000;
                prop_assert!(cost >= exact, "never too little");
                prop_assert!(cost < exact + 1_000_000, "less than a micro-dollar too much");
            }
            Err(_) => prop_assert!(exact > u128::from(MicroDollars::MAX) * 1_000_000),
        }
    }

    #[test]
    fn more_usage_never_costs_less(prices in prices(), usage in usage(), more in 0..1_000_000_u64) {
        let larger = Usage { output: usage.output.saturating_add(more), ..usage };
        if let (Ok(cost), Ok(larger)) = (prices.cost(&usage), prices.cost(&larger)) {
            prop_assert!(cost <= larger);
        }
    }

    #[test]
    fn money_is_parsed_as_it_is_printed(amount in amount()) {
        let text = amount.to_string();
        prop_assert_eq!(text.parse(), Ok(amount));
        let in_words = format!("{} usd", text.trim_start_matches('$'));
        prop_assert_eq!(in_words.parse(), Ok(amount));
        prop_assert_eq!(serde_json::from_value(serde_json::to_value(amount).unwrap()).ok(), Some(amount));
    }

    #[test]
    fn no_text_makes_the_parsers_panic(text in ".{0,70}", exponent in any::<i64>()) {
        let _ = text.parse::<MicroDollars>();
        let _ = MicroDollars::per_million_tokens(&text);
        let _ = MicroDollars::per_million_tokens(&format!("1e{exponent}"));
    }

    /// A price with few digits has one decimal text, whatever its exponent.
    #[test]
    fn prices_per_token_keep_every_digit(digits in 0..100_000_u64, places in 0_usize..=12) {
        let parsed = MicroDollars::per_million_tokens(&format!("{digits}e-{places:02}"));
        let scaled = u128::from(digits) * 10_u128.pow(u32::try_from(12 - places).unwrap());
        match u64::try_from(scaled).ok().and_then(|amount| MicroDollars::new(amount).ok()) {
            Some(expected) => prop_assert_eq!(parsed, Ok(expected)),
            None => prop_assert!(parsed.is_err()),
        }
    }

    #[test]
    fn an_estimate_never_exceeds_the_models_maximum(
        prices in prices(), input in any::<u64>(), max_output in proptest::option::of(any::<u64>()),
    ) {
        let estimate = prices.estimate(&Estimate { input, max_output });
        prop_assert_eq!((estimate.input, estimate.calls), (input, 1));
        prop_assert!(prices.max_output.is_none_or(|most| estimate.output <= most));
        prop_assert!(max_output.is_none_or(|most| estimate.output <= most));
    }

    #[test]
    fn prices_are_read_back_from_json_as_they_were(prices in prices()) {
        let json = serde_json::to_value(&prices).unwrap();
        prop_assert_eq!(serde_json::from_value::<Prices>(json).unwrap(), prices);
    }
}

#[test]
fn money_has_two_to_six_decimal_places() {
    for (amount, text) in [
        (0, "$0.00"),
        (1, "$0.000001"),
        (10_000, "$0.01"),
        (150_000, "$0.15"),
        (12_500_000, "$12.50"),
        (12_345_678, "$12.345678"),
        (MicroDollars::MAX, "$1000000.00"),
    ] {
        assert_eq!(MicroDollars::new(amount).unwrap().to_string(), text);
    }
    assert_eq!(dollars(-1_250_000), "-$1.25");
}

#[test]
fn money_is_written_with_a_sign_or_a_unit() {
    for text in ["$12.50", "$12.5", "12.5 usd", "12.50USD", " $12.500000 "] {
        assert_eq!(money(text).get(), 12_500_000, "{text}");
    }
    for (text, rule) in [
        ("12.50", "write dollars"),
        ("", "write dollars"),
        ("$", "write dollars"),
        ("$-1", "write dollars"),
        ("$1.", "write dollars"),
        ("$.5", "write dollars"),
        ("$1e3", "write dollars"),
        ("$1,000", "write dollars"),
        ("12 eur", "write dollars"),
        ("$0.0000001", "6 decimal places"),
        ("$1000000.000001", "at most $1000000.00"),
    ] {
        let error = text.parse::<MicroDollars>().unwrap_err();
        assert!(error.to_string().contains(rule), "{text}: {error}");
    }
}

#[test]
fn a_price_per_token_becomes_one_per_million_without_binary_fractions() {
    for (text, price) in [
        ("1.5e-07", 150_000),
        ("2.5E-6", 2_500_000),
        ("0.00000125", 1_250_000),
        ("3e-06", 3_000_000),
        ("0", 0),
        ("0.0", 0),
        ("5.46875e-07", 546_875),
        // Less than a micro-dollar is rounded up.
        ("5.0000000000000004e-08", 50_001),
        ("1e-300", 1),
    ] {
        assert_eq!(
            MicroDollars::per_million_tokens(text).unwrap().get(),
            price,
            "{text}"
        );
    }
    for text in [
        "-1e-7",
        "1e",
        "e-7",
        "NaN",
        "1e-7x",
        "2",
        "1e99999999999",
        "\"1\"",
    ] {
        assert!(MicroDollars::per_million_tokens(text).is_err(), "{text}");
    }
    assert_eq!(MicroDollars::from_json_number("5e-3").unwrap(), money("$0.005"));
}

#[test]
fn each_kind_of_token_has_its_price_and_a_call_its_own() {
    let prices = Prices {
        cached_input: Some(money("$1.25")),
        cache_write: Some(money("$3")),
        per_call: Some(money("$0.01")),
        ..Prices::new(money("$2.50"), money("$10"))
    };
    let usage = Usage {
        input: 1_000_000,
        output: 1_000_000,
        cached_input: 1_000_000,
        cache_write: 1_000_000,
        calls: 1,
    };
    assert_eq!(prices.cost(&usage).unwrap(), money("$16.76"));
    assert_eq!(
        prices.cost(&Usage::new(1, 0)).unwrap().get(),
        10_003,
        "2.5 is rounded up"
    );
}

#[test]
fn cached_tokens_without_a_price_cost_as_much_as_others() {
    let prices = Prices::new(money("$2"), money("$8"));
    let cached = Usage {
        cached_input: 500_000,
        cache_write: 500_000,
        ..Usage::default()
    };
    assert_eq!(prices.cost(&cached).unwrap(), money("$2"));
}

#[test]
fn a_usage_that_no_limit_could_count_is_refused() {
    let prices = Prices::new(money("$1000"), MicroDollars::ZERO);
    let usage = Usage::new(u64::MAX, 0);
    assert!(prices.cost(&usage).is_err());
    assert!(prices.amounts(&usage).is_err());
}

#[test]
fn an_estimate_is_the_requests_cap_or_the_default_or_the_maximum() {
    let prices = Prices::new(money("$1"), money("$1"));
    let output = |prices: &Prices, estimate: Estimate| prices.estimate(&estimate).output;
    let (open, capped) = (Estimate::new(10), Estimate::new(10).max_output(5_000));
    assert_eq!((output(&prices, open), output(&prices, capped)), (0, 5_000));
    let prices = Prices {
        max_output: Some(4_096),
        ..prices
    };
    assert_eq!((output(&prices, open), output(&prices, capped)), (4_096, 4_096));
    let prices = Prices {
        default_output: Some(1_000),
        ..prices
    };
    assert_eq!((output(&prices, open), output(&prices, capped)), (1_000, 4_096));
}

#[test]
fn what_a_usage_takes_is_listed_by_limit() {
    let prices = Prices::new(money("$1"), money("$2"));
    let amounts = prices.amounts(&Usage::new(1_000_000, 500_000)).unwrap();
    let amounts: Vec<_> = amounts
        .iter()
        .map(|(limit, amount)| (limit.as_str(), *amount))
        .collect();
    assert_eq!(amounts, [("tpm", 1_500_000), ("usd", 2_000_000)]);
}

#[test]
fn prices_that_break_a_rule_name_it() {
    let prices = Prices::new(money("$1"), money("$2"));
    assert_eq!(prices.check(), Ok(()));
    let nothing = Prices {
        input: None,
        output: None,
        ..prices.clone()
    };
    assert!(
        nothing
            .check()
            .unwrap_err()
            .to_string()
            .contains("at least one price")
    );
    let large = Prices {
        max_output: Some(Tokens::MAX + 1),
        ..prices.clone()
    };
    assert_eq!(large.check().unwrap_err().field, "max_output");
    let both = Prices {
        token_limits: [prices.money_limit.clone()].into(),
        ..prices.clone()
    };
    assert_eq!(both.check().unwrap_err().field, "token_limits");
    let many = (0..9).map(|number| LimitName::parse(format!("t{number}")).unwrap());
    let many = Prices {
        token_limits: many.collect(),
        ..prices
    };
    assert_eq!(many.check().unwrap_err().value, "9");
}
