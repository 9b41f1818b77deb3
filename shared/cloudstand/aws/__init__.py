"""The world as AWS would show it: moto in this process, corrected where it differs from AWS."""
