// Package matrix reads a policy as a whole: it asks it about every [engine.Cell], the
// combinations of class, phase, completion, replay safety and budget, and shows the
// answers. Two policies are compared cell by cell.
//
// The questions go through the same [engine.Policy] as in production, and what an
// interlock would overrule is marked. All facts beside the cell's are fixed and shown
// with the answers ([Facts]), because a policy may look at more than the cell: a cell
// stands for the questions with these facts.
//
// The package draws text, JSON and a self-contained page. It doesn't load policies or
// configurations, and nothing that it does reaches a running proxy. The commands
// `policy matrix` and `policy diff` call it.
//
//	facts := matrix.Default()
//	answers, err := matrix.Ask(ctx, set, facts, nil, nil)
//	if err != nil {
//		return err // ctx has ended
//	}
//	m := matrix.Matrix{Policy: "embedded", Facts: facts, Answers: answers}
//	err = m.WriteText(os.Stdout)
package matrix
