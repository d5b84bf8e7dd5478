package engine

// MaxSetAside is the longest that an effect of a policy sets a key, a channel or a model
// aside: one that says more does so for this long.
const MaxSetAside = maxSetAside
