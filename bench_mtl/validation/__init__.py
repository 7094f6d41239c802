"""Whether all is as it should be: conformance, validation, the doctor, and slow references."""
