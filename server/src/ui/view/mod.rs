//! Views: data in, markup out.

mod audit;
mod bucket;
mod edit;
mod entities;
mod entity;
mod events;
mod level_name;
mod limits;
mod mode;
mod overview;
mod resource;
mod resources;
mod series;
mod usage;
mod window_choice;

pub(crate) use audit::audit;
pub(crate) use bucket::{bucket, live};
pub(crate) use edit::{Edit, confirm, edit};
pub(crate) use entities::entities;
pub(crate) use entity::{children_page as children, entity};
pub(crate) use limits::limits;
pub(crate) use overview::overview;
pub(crate) use resource::resource;
pub(crate) use resources::resources;
pub(crate) use usage::{UsageForm, usage_of_entity, usage_of_resource, usage_of_window, usage_start};
