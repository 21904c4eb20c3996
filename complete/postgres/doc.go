// Package postgres shows what the modules that link the PostgreSQL driver export, under the
// names that they would have in package complete: atoms/data/postgres. It is a separate
// package, so that programs that import complete do not link the driver.
package postgres
