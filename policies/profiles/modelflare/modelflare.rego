# METADATA
# title: ModelFlare
# description: |
#   The failure matrix as it is published: which failure is retried on its own route,
#   which falls back to another route of the same contract, and what it changes. The
#   default policy is that matrix; this name says that a configuration relies on it.
# scope: package
# schemas:
#   - input: schema
package fourgate.profiles.modelflare

import data.fourgate.standard

# METADATA
# title: The answer to the engine's question
decision := standard.decision
