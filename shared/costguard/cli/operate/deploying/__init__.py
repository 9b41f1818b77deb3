"""What `costguard deploy` is made of: the program it runs, and what a Terraform plan would change."""
