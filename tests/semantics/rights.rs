//! Whichever right the user of Redis lacks for a while: nothing is lost, nothing is admitted beyond a limit, nothing is
//! charged twice. Each right of docs/redis.md is taken away in turn, on one Redis.

mod budgets;
#[cfg(feature = "queues")]
mod clock;
mod decisions;
#[cfg(feature = "leases")]
mod leases;
#[cfg(feature = "queues")]
mod lost;
#[cfg(feature = "queues")]
mod queues;

use weir_config::{Login, RedisConfig, Secret, Topology};
use weir_core::key::KeySecret;
use weir_store::redis::{RedisShared, RedisStore};
use weir_testing::rights;
use weir_time::clock::Clock;

use crate::support::{RedisServer, redis_config, watched};

const USER: &str = "weir";
const PASSWORD: &str = "hunter2";

/// A Redis whose user has the rights of decisions and `more`.
struct Guarded {
    redis: RedisServer,
    all: Vec<&'static str>,
}

impl Guarded {
    fn start(more: &[&'static str]) -> Self {
        let (redis, all) = (RedisServer::start(), [&rights::of_decisions(), more].concat());
        rights::add_user(&redis, USER, PASSWORD, &all);
        Self { redis, all }
    }

    async fn store(&self, clock: Clock) -> RedisStore {
        let login = Login { username: Some(USER.to_owned()), password: Secret::new(PASSWORD) };
        let config =
            RedisConfig { login: Some(login), ..redis_config(vec![self.redis.url()], Topology::Single) };
        watched(&RedisShared::new(&config, KeySecret::BUILT_IN, clock)).await
    }

    fn withdraw(&self, right: &str) {
        rights::withdraw(&self.redis, USER, right);
    }

    fn grant_all(&self) {
        rights::grant(&self.redis, USER, &self.all);
    }
}
