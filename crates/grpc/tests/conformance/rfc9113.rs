//! RFC 9113: HTTP/2, by section.

mod section_10;
mod section_3;
mod section_4;
mod section_5;
mod section_6_1;
mod section_6_5;
mod section_6_8;
mod section_6_9;
mod section_8_1;
mod section_8_2;
mod section_8_3;
mod section_9;

use crate::case::Case;

pub(crate) fn cases() -> Vec<Case> {
    [
        section_3::cases(),
        section_4::cases(),
        section_5::cases(),
        section_6_1::cases(),
        section_6_5::cases(),
        section_6_8::cases(),
        section_6_9::cases(),
        section_8_1::cases(),
        section_8_2::cases(),
        section_8_3::cases(),
        section_9::cases(),
        section_10::cases(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
