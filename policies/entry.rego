# METADATA
# title: Entry point
# description: What the engine asks unless the configuration names another query.
# scope: package
package fourgate

import data.fourgate.standard

# METADATA
# title: The answer to the engine's question
# description: The default policy's. A file with this package takes its place.
# entrypoint: true
decision := standard.decision
