//! The numbers of a call of the script of budgets, which `lua/budget.lua` reads after the head of every call.

use crate::scripts::doubles;

doubles! {
    /// Common numbers of the decisions of a group, before their limits.
    BudgetGroupHead {
        /// Number of limits of each decision.
        count,
        decisions,
        /// The distance of two possible ends of holds; 0 without holds.
        grain,
        /// Time for which ids of holds are known.
        known_for,
    }
}

doubles! {
    /// The costs of a limit, after its own numbers.
    BudgetLimitNumbers {
        /// The level up to which forced debits charge; -1 if only the ceiling bounds them.
        debt_level,
        /// The cost that it takes: the number of a name, from 1; 0 for the request's, -1 for a fixed one.
        name,
        /// 1 if a hold charges it at once.
        at_once,
        /// The level of `near_limit`; -1 without one.
        near,
    }
}

doubles! {
    BudgetHead {
        op,
        /// 1 if it has the key of a record.
        has_record,
        /// Digest by which two decisions under one id are the same.
        digest,
        /// The mark of parts that it makes.
        mark,
        hold_for,
    }
}

doubles! {
    BudgetUnits {
        /// The units; -1 for a limit that the operation leaves alone or whose use is not named.
        asked,
        /// The least that may be granted instead; -1 if all must be.
        least,
        digest,
        /// The offset of its windows, if they are spread.
        phase,
    }
}
