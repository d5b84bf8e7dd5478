package hcl

import (
	hcl2 "github.com/hashicorp/hcl/v2"

	"github.com/fourgate-dev/fourgate/engine"
)

// decode reads the blocks of all files as if they stood in one, then checks what needs
// to see them together.
func (d *decoder) decode(files []*hcl2.File) {
	all := &section{decoder: d}
	for _, file := range files {
		top := file.Body.MissingItemRange() // for the file's name
		opened := d.open(file.Body, nil, top, &rootShape)
		all.blocks = append(all.blocks, opened.blocks...)
		if all.place.Filename == "" {
			all.place = d.beginning(top.Filename)
		}
	}
	d.server(all.inner("server", &serverShape))
	all.labelled("classifier", &classifierShape, d.classifier)
	all.labelled("provider", &providerShape, d.provider)
	d.policy(all.inner("policy", &policyShape)) // before the groups, whose own start from it
	all.labelled("route_group", &groupShape, d.group)
	all.labelled("caller", &callerShape, d.caller)
	d.retryBudget(all.inner("retry_budget", &retryBudgetShape))
	d.ledger(all.inner("ledger", &ledgerShape))
	d.state(all.inner("state", &stateShape))
	if d.incomplete {
		return // a missing file would look like missing blocks
	}
	d.resolveReferences()
	d.checkClassifiers()
	d.checkListeners(all.place)
	d.checkCatalog(all.place)
}

// beginning is the first word of a file, the place of what the configuration lacks as a
// whole.
func (d *decoder) beginning(filename string) hcl2.Range {
	at := hcl2.InitialPos
	for _, c := range d.source[filename] {
		if c > ' ' {
			break
		}
		if at.Byte++; c == '\n' {
			at.Line, at.Column = at.Line+1, 0
		}
		at.Column++
	}
	end := at
	end.Byte++
	end.Column++
	return hcl2.Range{Filename: filename, Start: at, End: end}
}

func (d *decoder) retryBudget(s *section) {
	d.cfg.Spec.RetryBudget = engine.RetryBudgetSpec{
		Ratio: s.number("ratio", defaultRetryRatio, 0, maxRetryRatio),
		Floor: s.number("floor", defaultRetryFloor, 0, maxRetryFloor),
		Cap:   s.number("cap", defaultRetryCap, 0, maxRetryCap),
	}
}

// checkCatalog hands the specification to the engine's rules and gives each broken one
// its place.
func (d *decoder) checkCatalog(start hcl2.Range) {
	catalog, problems := engine.NewCatalog(d.cfg.Spec)
	broken := d.diags.HasErrors()
	for _, p := range problems {
		if d.isFaulty(p.Path) || broken && p.Warning && len(p.Path) == 2 || d.isDefaultOnly(p) {
			continue
		}
		at, ok := d.placeOf(p.Path)
		if !ok {
			at = start
		}
		severity := Error
		if p.Warning {
			severity = Warning
		}
		d.add(diagnosticAt(severity, at, p.Summary, p.Detail))
	}
	d.cfg.Catalog = catalog
}

// isDefaultOnly says whether a warning is about a deadline that nobody wrote, with no
// provider's header timeout written either: the file has nothing to mend then.
func (d *decoder) isDefaultOnly(p engine.Problem) bool {
	if !p.Warning || len(p.Path) != 4 || p.Path[0] != "route_group" || p.Path[3] != "deadline" {
		return false
	}
	if _, written := d.ranges[pathKey(p.Path)]; written {
		return false
	}
	for _, provider := range d.cfg.Spec.Providers {
		if _, written := d.ranges[pathKey([]string{"provider", provider.Name, "timeouts", "headers"})]; written {
			return false
		}
	}
	return true
}
