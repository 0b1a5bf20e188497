"""What people see: tables, charts, pictures, report.html."""
