// Package postgres is the part of package complete for storage and durable work in
// PostgreSQL. It has what atoms/data/postgres and atoms/durable/postgres export, under the
// names that they would have in package complete. It is a separate package, so that
// programs that import complete do not link the driver.
package postgres
