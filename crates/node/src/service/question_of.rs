//! Questions of generated requests.

/// The question of a generated request, of this cost, whose caller has the rights of a snapshot: all of them name their
/// subject by the same fields.
#[macro_export]
macro_rules! question_of {
    ($request:expr, $cost:expr, $context:expr, $rights:expr) => {
        $crate::limiter::Question {
            resource: &$request.resource,
            consumer: &$request.consumer,
            strategy: &$request.strategy,
            cost: $cost,
            attributes: $crate::service::attributes(&$request.attributes),
            ..$crate::limiter::Question::until($context.deadline, $rights.of(&$context))
        }
    };
}

pub(super) use crate::question_of;
