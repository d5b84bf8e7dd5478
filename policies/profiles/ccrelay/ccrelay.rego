package fourgate.profiles.ccrelay

import data.fourgate.standard

decision := standard.decision
