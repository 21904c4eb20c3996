// Package fxmodule puts jobs and coordinators into a program built with go.uber.org/fx.
//
//	fx.New(
//		fxmodule.Module(core.Options{MaxConcurrency: 16}),     // a *core.Sink and a *jobs.Runner
//		fxmodule.Jobs(newPipelineJobs, newAuditJobs),          // constructors of []jobs.Job
//		fxmodule.Coordinator[*Uploads]("uploads", newUploads), // what newUploads returns, by the name "uploads"
//		fx.Provide(newStore),
//	).Run()
//
// Nothing else has to ask for the runner. It accepts signals from the moment the program is
// built; runs start when what their handlers need has started. When the program stops, the
// runner and the coordinators are drained with the deadline of the program and then closed, in
// the reverse order of construction. Coordinators that jobs need are made before the runner, so
// they end after it. Others are usually made later, so they end first.
//
// Constructors of jobs ask for what handlers need, as all constructors do. [Scoped] makes
// handlers that get a fresh scope for each attempt, for example a transaction.
package fxmodule
