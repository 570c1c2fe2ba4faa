"""What people see of a plan: figures, documents, tables, pictures and pages, all views of the same decision."""
