"""Reports that CI systems read: what each contestant's row means for a job."""
