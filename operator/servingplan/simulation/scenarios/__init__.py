"""What goes wrong, each a pure change of a `World`. `catalogue` names them all; `worst` says where it hurts most."""
