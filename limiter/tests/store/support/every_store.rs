//! One behavior, every store.

/// Runs each named behavior, a function of a `Stage`, on every kind of store.
macro_rules! on_every_store {
    ($($behavior:ident),+ $(,)?) => {
        on_stores_without_a_clock! { $($behavior),+ }
        mod http {
            $(#[tokio::test]
            async fn $behavior() {
                super::$behavior($crate::store::support::Stage::http()).await;
            })+
        }
        mod ministack {
            $(#[tokio::test]
            async fn $behavior() {
                super::$behavior($crate::store::support::Stage::ministack()).await;
            })+
        }
    };
}

/// Runs each named behavior on the stores whose responses carry no time, where nothing stands above the stage's clock.
macro_rules! on_stores_without_a_clock {
    ($($behavior:ident),+ $(,)?) => {
        mod memory {
            $(#[tokio::test]
            async fn $behavior() {
                super::$behavior($crate::store::support::Stage::memory()).await;
            })+
        }
        mod file {
            $(#[tokio::test]
            async fn $behavior() {
                super::$behavior($crate::store::support::Stage::file()).await;
            })+
        }
        mod one_item_pages {
            $(#[tokio::test(start_paused = true)]
            async fn $behavior() {
                let weather = $crate::store::support::Weather::OneItemPages;
                super::$behavior($crate::store::support::Stage::faulty(weather)).await;
            })+
        }
        mod bad_weather {
            $(#[tokio::test(start_paused = true)]
            async fn $behavior() {
                let weather = $crate::store::support::Weather::Storm;
                super::$behavior($crate::store::support::Stage::faulty(weather)).await;
            })+
        }
    };
}
